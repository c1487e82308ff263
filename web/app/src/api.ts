// Client of the server's HTTP API.

import { spareEngine } from "./engine";
import type { Plan, Summary } from "./lobby/protocol";
import { settings } from "./settings.svelte";
import type { Mode } from "./worker/messages";

export interface GameInfo {
  name: string;
  build: string;
  ticks_per_second: number;
  /** The fewest and the most players. */
  seats: [number, number];
  /** How it can be run. */
  modes: Mode[];
  /** The options of its sessions; missing or null if there are none. */
  session?: (Plan & { scenarios: string[] }) | null;
}

export interface ServerInfo {
  version: string;
  commit: string;
  /** A passphrase is set. */
  locked: boolean;
  /** Players have to sign in to play in a room. */
  sign_in: boolean;
  games: GameInfo[];
  websocket: { path: string };
  webtransport: { port: number; cert: string | null } | null;
  /** Addresses for people on the command line. */
  native: string[];
}

export interface SessionInfo {
  name: string;
  game: string;
  build: string;
  mode: Mode;
  tick: number;
  seconds: number;
  seats: number;
  players: { seat: number; name: string }[];
  watchers: number;
}

export interface Health {
  status: string;
  version: string;
  commit: string;
  uptime_s: number;
  sessions: number;
  players: number;
  /** Of the lobby. */
  hosted_sessions: number;
  hosted_players: number;
}

const DEADLINE_MS = 5_000;

/** The passphrase is missing or wrong. */
export class Locked extends Error {}

/** The server has no such thing. */
class Missing extends Error {}

export function readServer(): Promise<ServerInfo> {
  return read<ServerInfo>("/api/server");
}

export function readHealth(): Promise<Health> {
  return read<Health>("/api/health");
}

/** The listed sessions. Throws `Locked` if the key is missing or wrong. */
export async function readSessions(key: string | null): Promise<SessionInfo[]> {
  return (await read<{ sessions: SessionInfo[] }>("/api/sessions", await headersFor(key))).sessions;
}

/** The listed sessions of the lobby that have a place; none if the server has no lobby. */
export async function readLobby(key: string | null): Promise<Summary[] | null> {
  try {
    return (await read<{ sessions: Summary[] }>("/api/lobby?open=1", await headersFor(key))).sessions;
  } catch (error) {
    if (error instanceof Missing) return null;
    throw error;
  }
}

/** What a WebSocket's address ends with: browsers let no page set its headers. */
export async function socketQuery(): Promise<string> {
  return settings.key ? `?proof=${await proof(settings.key)}` : "";
}

async function headersFor(key: string | null): Promise<Record<string, string>> {
  return key ? { Authorization: `Sametick ${await proof(key)}` } : {};
}

async function read<T>(path: string, headers: Record<string, string> = {}): Promise<T> {
  const response = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(DEADLINE_MS) });
  if (response.status === 401) throw new Locked("The server wants a passphrase.");
  if (response.status === 404) throw new Missing("The server has no such thing.");
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  return (await response.json()) as T;
}

let last: { key: string; unix_minute: number; hex: Promise<string> } | undefined;

/** Proves that this page knows the key. Good for a minute, so it is computed once a minute. */
function proof(key: string): Promise<string> {
  const unix_minute = Math.floor(Date.now() / 60_000);
  if (last?.key !== key || last.unix_minute !== unix_minute) {
    last = { key, unix_minute, hex: spareEngine().ask({ what: "proof", key, unix_minute }) };
  }
  return last.hex;
}
