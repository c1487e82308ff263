// Settings in the browser's storage. Without storage they last as long as the page.

import { cleanPlayerName, playerName } from "./names";
import type { RouteName } from "./worker/messages";

export type Theme = "system" | "light" | "dark";

const PREFIX = "sametick.";
const DAY_MS = 86_400_000;

function read(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** The only storage key of the token. */
export const TOKEN_KEY = `${PREFIX}token`;

function write(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    // Remembered until the page is closed.
  }
}

class Settings {
  #name = $state(read("name") ?? remembered("name", playerName()));
  #key = $state(read("key"));
  #token: string | null = null;
  #lobby_token: string | null = null;
  #character = $state(read("character"));
  #theme = $state((read("theme") as Theme | null) ?? "system");
  #sound = $state(read("sound") === "on");
  #players = $state(Number(read("players") ?? 2));
  #knows_arena = $state(read("knows-arena") === "yes");

  get name(): string {
    return this.#name;
  }
  set name(typed: string) {
    this.#name = cleanPlayerName(typed) || playerName();
    write("name", this.#name);
  }

  /** The root key of a server with a passphrase, in hex. */
  get key(): string | null {
    return this.#key;
  }
  set key(key: string | null) {
    this.#key = key;
    write("key", key);
  }

  /**
   * The token that identifies us to this server: a secret. It is read anew each time, since every page of this browser may replace
   * it.
   */
  get token(): string | null {
    return read("token") ?? this.#token;
  }
  set token(token: string | null) {
    this.#token = token;
    write("token", token);
  }

  /** Our token for the lobby of this server: a secret. */
  get lobby_token(): string | null {
    return read("lobby-token") ?? this.#lobby_token;
  }
  set lobby_token(token: string | null) {
    this.#lobby_token = token;
    write("lobby-token", token);
  }

  /** A token from the site around us. It counts only where players sign in, so that other sites cannot replace our identity. */
  offered_token: string | null = $state(null);

  /** The character for the next room, if the player has chosen one before joining. */
  wished_character: string | null = $state(null);

  /** The character that played last, for pages that have no room. */
  get character(): string | null {
    return this.#character;
  }
  set character(name: string | null) {
    this.#character = name;
    write("character", name);
  }

  get theme(): Theme {
    return this.#theme;
  }
  set theme(theme: Theme) {
    this.#theme = theme;
    write("theme", theme);
  }

  get sound(): boolean {
    return this.#sound;
  }
  set sound(on: boolean) {
    this.#sound = on;
    write("sound", on ? "on" : null);
  }

  get players(): number {
    return this.#players;
  }
  set players(players: number) {
    this.#players = players;
    write("players", String(players));
  }

  /** Whether the player has closed arena's hint about its keys. */
  get knows_arena(): boolean {
    return this.#knows_arena;
  }
  set knows_arena(knows: boolean) {
    this.#knows_arena = knows;
    write("knows-arena", knows ? "yes" : null);
  }

  /** The route that worked last: tried first the next time. After a day the best one is given another chance. */
  get route(): RouteName | null {
    const [route, at_ms] = (read("route") ?? "").split("@");
    const fresh = Date.now() - Number(at_ms) < DAY_MS;
    return fresh && (route === "webtransport" || route === "websocket") ? route : null;
  }
  set route(route: RouteName) {
    if (this.route !== route) write("route", `${route}@${Date.now()}`);
  }
}

function remembered(name: string, value: string): string {
  write(name, value);
  return value;
}

export const settings = new Settings();
