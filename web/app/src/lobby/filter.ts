// Which sessions somebody wants to see, as the page's fields have it.

import type { Mode } from "../worker/messages";
import type { Filter, Summary } from "./protocol";

export interface Chosen {
  game: string | null;
  mode: Mode | null;
  /** With at least so many people. */
  players: number;
  open: boolean;
  locked: boolean | null;
  /** At most so many milliseconds away. */
  ping_ms: number | null;
}

export const EVERYTHING: Chosen = { game: null, mode: null, players: 0, open: false, locked: null, ping_ms: null };

/** What the gateway is asked for. */
export function filterOf({ game, mode, players, open, locked }: Chosen): Filter {
  return {
    ...(game !== null && { game }),
    ...(mode !== null && { mode }),
    ...(open && { open }),
    ...(locked !== null && { locked }),
    ...(players > 0 && { players }),
  };
}

/** How many things were chosen. */
export function countOf(chosen: Chosen): number {
  return Object.entries(chosen).filter(([name, value]) => value !== EVERYTHING[name as keyof Chosen]).length;
}

/** What is not known to be too far away. */
export function isNear(ping_ms: number | null, limit_ms: number | null): boolean {
  return limit_ms === null || ping_ms === null || ping_ms <= limit_ms;
}

/** Whether everybody has left its game: who joins it meets nobody. */
export function isDeserted({ phase, players }: Summary): boolean {
  return players === 0 && (phase === "running" || phase === "results");
}

/** Those that one can join and that gather first; then those that play, those that are full, and those that everybody has left. */
export function sorted(sessions: Summary[]): Summary[] {
  const rank = (summary: Summary) => {
    const { phase, players, seats } = summary;
    if (isDeserted(summary)) return 4;
    return players >= seats ? 3 : phase === "lobby" ? 0 : phase === "running" ? 1 : 2;
  };
  return [...sessions].sort((a, b) => rank(a) - rank(b) || b.players - a.players || (a.session < b.session ? -1 : 1));
}
