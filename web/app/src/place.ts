// Addresses: from the address bar to a place in the app, and back.

import { isSessionName } from "./names";
import type { RouteName } from "./worker/messages";

export type Place =
  | { page: "home" }
  | { page: "game"; game: string; session: string; options: GameOptions }
  | { page: "nowhere" };

/** How a session is joined, and begun if it does not exist yet. */
export interface GameOptions {
  players: number;
  /** Whether bots play for empty seats. */
  bots: boolean;
  listed: boolean;
  watch: boolean;
  /** The only route to take, for tests. */
  route: RouteName | null;
}

export const DEFAULTS: GameOptions = { players: 2, bots: true, listed: false, watch: false, route: null };

export function placeOf(url: { pathname: string; search: string }): Place {
  if (url.pathname === "/") return { page: "home" };
  const [, play, game, name, ...rest] = url.pathname.split("/");
  const session = decoded(name);
  if (play !== "play" || !game || !session || rest.join("") !== "" || !isSessionName(session)) {
    return { page: "nowhere" };
  }
  return { page: "game", game, session, options: optionsOf(new URLSearchParams(url.search)) };
}

export function addressOf(game: string, session: string, options: Partial<GameOptions> = {}): string {
  const { players, bots, listed, watch, route } = { ...DEFAULTS, ...options };
  const query = [
    players !== DEFAULTS.players && `players=${players}`,
    bots !== DEFAULTS.bots && "bots=no",
    listed && "listed",
    watch && "watch",
    route && `route=${route}`,
  ].filter(Boolean);
  return `/play/${game}/${encodeURIComponent(session)}${query.length ? `?${query.join("&")}` : ""}`;
}

function optionsOf(query: URLSearchParams): GameOptions {
  const players = Number(query.get("players") ?? DEFAULTS.players);
  const route = query.get("route");
  return {
    players: Number.isInteger(players) ? Math.min(4, Math.max(2, players)) : DEFAULTS.players,
    bots: query.get("bots") !== "no",
    listed: query.has("listed"),
    watch: query.has("watch"),
    route: route === "websocket" || route === "webtransport" ? route : null,
  };
}

function decoded(part: string | undefined): string | null {
  try {
    return part ? decodeURIComponent(part) : null;
  } catch {
    return null;
  }
}

/** The root key in a fragment such as `#key=…`. */
export function keyInFragment(fragment: string): string | null {
  return /^#key=([0-9a-f]{64})$/i.exec(fragment)?.[1]?.toLowerCase() ?? null;
}
