// What is said at a gateway and at the host of a session: docs/sessions.md has all of it.

import { randomHex } from "../hex";
import type { Mode } from "../worker/messages";

/** 32 hexadecimal digits each. */
export type PlayerId = string;
export type SessionId = string;

export type Phase = "lobby" | "running" | "results" | "closed";

/** What a session is about. */
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
  /** Cut off; the seat waits. */
  away: boolean;
}

export interface GroupState {
  group: number;
  name: string;
  captain: PlayerId | null;
}

/** Everything that members know of a session. */
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

/** Where the game is that goes on, and as whom one takes part in it. */
export interface Offer {
  game: string;
  mode: Mode;
  /** The name of the relay's session or of the room. */
  place: string;
  /** Shows who one is. */
  pass: string;
  /** None: one watches. */
  seat: number | null;
  /** Ports of the host; the session's own socket is at the first, too. */
  websocket: number | null;
  webtransport: { port: number; cert: string | null } | null;
  native: string[];
}

export type Parting = "left" | "released" | "kicked" | "banned";

/** Where a session goes on. */
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

/** What members are told: each has one of these names. */
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

/** The last word over a connection. */
export type Closing =
  | "bad_ticket"
  | "bad_token"
  | "came_back"
  | "left"
  | "kicked"
  | "banned"
  | "suspended"
  | { over: Ending };

/** What a member may want, and with what. */
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
  /** Where its host is, if the gateway tells. */
  address?: string;
}

/** Whatever is left out does not matter. */
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

/** What a gateway answers: one of these. */
export interface Answer {
  you?: { player: PlayerId; token: string };
  sessions?: { sessions: Summary[]; more: boolean };
  go?: Go;
  refused?: string;
}

/** What comes over either connection. */
export interface Envelope {
  v: number;
  kind: string;
  seq?: number;
  event?: SessionEvent;
  answer?: Answer;
  closing?: Closing;
  code?: string;
}

/** Null if it is none: whatever sends that is no server of ours. */
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
