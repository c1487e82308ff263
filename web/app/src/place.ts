// Addresses: from the address bar to a place in the app, and back.

import { gameText } from "./games";
import { isSessionName } from "./names";
import type { Mode, RouteName } from "./worker/messages";

export type Place =
  | { page: "home" }
  /** `create`: with the form for a new session. */
  | { page: "lobby"; create: boolean }
  | { page: "session"; session: string }
  | { page: "game"; game: string; session: string; options: GameOptions }
  | { page: "nowhere" };

/** How a session is joined, and begun if it does not exist yet. */
export interface GameOptions {
  mode: Mode;
  players: number;
  /** Whether bots play for empty seats. */
  bots: boolean;
  listed: boolean;
  /** The scenario, which has an end; none: the game goes on. */
  scenario: string | null;
  /** The seed of all randomness, such as the places of rocks; none: a random one. */
  seed: number | null;
  watch: boolean;
  /** The only route to take, for tests. */
  route: RouteName | null;
  /** The key of a copy in this browser that the session begins with, if the server has nothing of it. */
  bring: string | null;
}

export function usualOptions(game: string): GameOptions {
  const { mode, players } = gameText(game);
  return { mode, players: players.usual, bots: true, listed: false, scenario: null, seed: null, watch: false, route: null, bring: null };
}

export function placeOf(url: { pathname: string; search: string }): Place {
  if (url.pathname === "/" || url.pathname === "/index.html") return { page: "home" };
  if (url.pathname === "/lobby") return { page: "lobby", create: new URLSearchParams(url.search).has("new") };
  const gathering = /^\/s\/([0-9a-f]{32})$/.exec(url.pathname)?.[1];
  if (gathering) return { page: "session", session: gathering };
  const [, play, game, name, ...rest] = url.pathname.split("/");
  const session = decoded(name);
  if (play !== "play" || !game || !session || rest.join("") !== "" || !isSessionName(session)) {
    return { page: "nowhere" };
  }
  return { page: "game", game, session, options: optionsOf(game, new URLSearchParams(url.search)) };
}

/** The address of a lobby session; everyone who has it may join. */
export function gatheringAddress(session: string): string {
  return `/s/${session}`;
}

export function addressOf(game: string, session: string, options: Partial<GameOptions> = {}): string {
  const usual = usualOptions(game);
  const { mode, players, bots, listed, scenario, seed, watch, route, bring } = { ...usual, ...options };
  const query = [
    mode !== usual.mode && `mode=${mode}`,
    players !== usual.players && `players=${players}`,
    bots !== usual.bots && "bots=no",
    listed && "listed",
    scenario && `scenario=${scenario}`,
    seed !== null && `seed=${seed}`,
    watch && "watch",
    route && `route=${route}`,
    bring && `bring=${encodeURIComponent(bring)}`,
  ].filter(Boolean);
  return `/play/${game}/${encodeURIComponent(session)}${query.length ? `?${query.join("&")}` : ""}`;
}

function optionsOf(game: string, query: URLSearchParams): GameOptions {
  const { least, most, usual } = gameText(game).players;
  const players = Number(query.get("players") ?? usual);
  const [mode, route] = [query.get("mode"), query.get("route")];
  return {
    mode: mode === "lockstep" || mode === "room" ? mode : gameText(game).mode,
    players: Number.isInteger(players) ? Math.min(most, Math.max(least, players)) : usual,
    bots: query.get("bots") !== "no",
    listed: query.has("listed"),
    scenario: /^[a-z0-9-]{1,24}$/.exec(query.get("scenario") ?? "")?.[0] ?? null,
    seed: seedOf(query.get("seed")),
    watch: query.has("watch"),
    route: route === "websocket" || route === "webtransport" ? route : null,
    bring: /^[0-9a-f]{32}\/[A-Za-z0-9_-]{1,255}$/.exec(query.get("bring") ?? "")?.[0] ?? null,
  };
}

/** A whole number that JavaScript can say exactly. */
function seedOf(text: string | null): number | null {
  const seed = Number(text);
  return text && /^\d+$/.test(text) && Number.isSafeInteger(seed) ? seed : null;
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
  return secretIn(fragment, "key", 64);
}

/** The token in a fragment such as `#token=…`. */
export function tokenInFragment(fragment: string): string | null {
  return secretIn(fragment, "token", 32);
}

function secretIn(fragment: string, name: string, digits: number): string | null {
  const value = new URLSearchParams(fragment.slice(1)).get(name) ?? "";
  return value.length === digits && /^[0-9a-f]+$/i.test(value) ? value.toLowerCase() : null;
}
