// The server's interface, as the page needs it.

import { spareEngine } from "./engine";
import type { Mode } from "./worker/messages";

export interface GameInfo {
  name: string;
  build: string;
  ticks_per_second: number;
  /** The fewest and the most players. */
  seats: [number, number];
  /** How it can be run. */
  modes: Mode[];
}

export interface ServerInfo {
  version: string;
  commit: string;
  /** A passphrase is set. */
  locked: boolean;
  /** Nobody plays in a room who has not signed in. */
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
}

const DEADLINE_MS = 5_000;

/** The server wants a passphrase, or another one. */
export class Locked extends Error {}

export function readServer(): Promise<ServerInfo> {
  return read<ServerInfo>("/api/server");
}

export function readHealth(): Promise<Health> {
  return read<Health>("/api/health");
}

/** The listed sessions. Throws `Locked` if the key is missing or wrong. */
export async function readSessions(key: string | null): Promise<SessionInfo[]> {
  const headers: Record<string, string> = key ? { Authorization: `Sametick ${await proof(key)}` } : {};
  return (await read<{ sessions: SessionInfo[] }>("/api/sessions", headers)).sessions;
}

async function read<T>(path: string, headers: Record<string, string> = {}): Promise<T> {
  const response = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(DEADLINE_MS) });
  if (response.status === 401) throw new Locked("The server wants a passphrase.");
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
