// Message types of gateway and host: docs/sessions.md describes them.

import { randomHex } from "../hex";
import type { Mode } from "../worker/messages";

/** 32 hexadecimal digits each. */
export type PlayerId = string;
export type SessionId = string;

export type Phase = "lobby" | "running" | "results" | "closed";

/** The settings of a session. */
export interface Settings {
  name: string;
  game: string;
  mode: Mode;
  /** The game's usual one if null. */
  scenario: string | null;
  /** 1 to 11. */
  difficulty: number;
  /** How many of the game's groups take part: the first ones. */
  groups: number;
  listed: boolean;
}

export interface Plan {
  groups: { name: string; seats: string[] }[];
}

export interface Person {
  player: PlayerId;
  name: string;
  seat: number | null;
  ready: boolean;
  /** Disconnected; the seat is kept. */
  away: boolean;
}

export interface GroupState {
  group: number;
  name: string;
  captain: PlayerId | null;
}

/** The state of a session that its members see. */
export interface View {
  session: SessionId;
  plan: Plan;
  settings: Settings;
  locked: boolean;
  phase: Phase;
  round: number;
  /** JSON in text, see `scoresOf`. */
  results: string | null;
  creator: PlayerId | null;
  groups: GroupState[];
  people: Person[];
}

/** The address of the running game, with the member's seat and pass. */
export interface Offer {
  game: string;
  mode: Mode;
  /** The name of the relay's session or of the room. */
  place: string;
  /** Identifies the member. */
  pass: string;
  /** None: a spectator. */
  seat: number | null;
  /** Ports of the host; the session's own socket is at the first, too. */
  websocket: number | null;
  webtransport: { port: number; cert: string | null } | null;
  native: string[];
}

export type Parting = "left" | "released" | "kicked" | "banned";

/** The new host of a session. */
export interface Forward {
  session: SessionId;
  address: string;
  ticket: string | null;
}

export interface Welcome {
  you: PlayerId;
  resumeToken: string;
  view: View;
}

/** Events for members: each has one of these names. */
export interface Events {
  welcome: Welcome;
  person: Person;
  left: { player: PlayerId; why: Parting };
  group: GroupState;
  about: { settings: Settings; locked: boolean };
  phase: { phase: Phase; round: number; results: string | null };
  creator: { creator: PlayerId | null };
  chat: { player: PlayerId; name: string; line: string };
  moved: Forward;
  play: Offer | null;
}

export type SessionEvent = Partial<Events>;

export type Ending = "unclaimed" | "idle" | "abandoned" | "finished" | "quarantined" | "moved" | "stopped";

/** The last message over a connection. */
export type Closing =
  | "bad_ticket"
  | "bad_token"
  | "came_back"
  | "left"
  | "kicked"
  | "banned"
  | "suspended"
  | { over: Ending };

/** Commands of members, with their payload. */
export interface Requests {
  take: { seat: number };
  stand: object;
  ready: { ready: boolean };
  rename: { name: string };
  chat: { line: string };
  start: object;
  settings: { settings: Settings };
  password: { password: string | null };
  kick: { player: PlayerId; ban: boolean };
  rematch: object;
  leave: object;
}

/** A session as lists have it. */
export interface Summary {
  session: SessionId;
  settings: Settings;
  phase: Phase;
  players: number;
  seats: number;
  locked: boolean;
  /** The address of its host, if the gateway sends it. */
  address?: string;
}

/** All fields are optional. */
export interface Filter {
  game?: string;
  mode?: Mode;
  open?: boolean;
  locked?: boolean;
  players?: number;
}

export interface Create {
  key: string;
  name: string;
  settings: Settings;
  password: string | null;
}

export interface Join {
  session: SessionId;
  name: string;
  password: string | null;
  seat: number | null;
}

export interface Asks {
  hello: { token: string | null };
  list: { filter: Filter; follow: boolean };
  find: { session: SessionId };
  create: Create;
  join: Join;
}

/** The way to a host. */
export interface Go {
  session: SessionId;
  address: string;
  ticket: string;
}

/** Answers of a gateway: one of these. */
export interface Answer {
  you?: { player: PlayerId; token: string };
  sessions?: { sessions: Summary[]; more: boolean };
  go?: Go;
  refused?: string;
}

/** Messages of either connection. */
export interface Envelope {
  v: number;
  kind: string;
  seq?: number;
  event?: SessionEvent;
  answer?: Answer;
  closing?: Closing;
  code?: string;
}

/** Null if it is not a message of our server. */
export function readEnvelope(text: unknown): Envelope | null {
  if (typeof text !== "string") return null;
  try {
    const value: unknown = JSON.parse(text);
    const is_one = typeof value === "object" && value !== null && "v" in value && value.v === 2 && "kind" in value;
    return is_one && typeof value.kind === "string" ? (value as Envelope) : null;
  } catch {
    return null;
  }
}

/** 32 random hexadecimal digits. */
export function randomKey(): string {
  return randomHex(16);
}
