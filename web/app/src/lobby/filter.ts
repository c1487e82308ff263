// The filter of the session list, as the page's fields have it.

import type { Mode } from "../worker/messages";
import type { Filter, Summary } from "./protocol";

export interface Chosen {
  game: string | null;
  mode: Mode | null;
  /** With at least this many players. */
  players: number;
  open: boolean;
  locked: boolean | null;
  /** Longest ping in milliseconds. */
  ping_ms: number | null;
}

export const EVERYTHING: Chosen = { game: null, mode: null, players: 0, open: false, locked: null, ping_ms: null };

/** The filter for the gateway. */
export function filterOf({ game, mode, players, open, locked }: Chosen): Filter {
  return {
    ...(game !== null && { game }),
    ...(mode !== null && { mode }),
    ...(open && { open }),
    ...(locked !== null && { locked }),
    ...(players > 0 && { players }),
  };
}

/** How many filters are set. */
export function countOf(chosen: Chosen): number {
  return Object.entries(chosen).filter(([name, value]) => value !== EVERYTHING[name as keyof Chosen]).length;
}

/** Sessions whose host is not known to be too far away. */
export function isNear(ping_ms: number | null, limit_ms: number | null): boolean {
  return limit_ms === null || ping_ms === null || ping_ms <= limit_ms;
}

/** Whether all players have left its game. */
export function isDeserted({ phase, players }: Summary): boolean {
  return players === 0 && (phase === "running" || phase === "results");
}

/** Joinable ones in the lobby phase first; then those that play, full ones, and deserted ones. */
export function sorted(sessions: Summary[]): Summary[] {
  const rank = (summary: Summary) => {
    const { phase, players, seats } = summary;
    if (isDeserted(summary)) return 4;
    return players >= seats ? 3 : phase === "lobby" ? 0 : phase === "running" ? 1 : 2;
  };
  return [...sessions].sort((a, b) => rank(a) - rank(b) || b.players - a.players || (a.session < b.session ? -1 : 1));
}
