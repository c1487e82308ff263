// Chooses a running session to join.

import type { SessionInfo } from "./api";

export function freeSeats(session: SessionInfo): number {
  return Math.max(0, session.seats - session.players.length);
}

/** What the player wants to play. */
export type Wanted = Pick<SessionInfo, "game" | "build" | "mode" | "seats">;

/** The fullest such session that still has a seat. Of several, the youngest. */
export function bestToJoin(sessions: SessionInfo[], wanted: Wanted): SessionInfo | null {
  const { game, build, mode, seats } = wanted;
  const open = sessions.filter(
    (session) =>
      session.game === game &&
      session.build === build &&
      session.mode === mode &&
      session.seats === seats &&
      freeSeats(session) > 0,
  );
  open.sort((a, b) => freeSeats(a) - freeSeats(b) || a.seconds - b.seconds);
  return open[0] ?? null;
}

/** Such as `42 s`, `3 min`, `2 h`. */
export function lasting(seconds: number): string {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`;
}
