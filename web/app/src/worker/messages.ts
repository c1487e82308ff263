// Messages between page and worker, and the JSON of the wasm client.

export type RouteName = "webtransport" | "websocket";

/** Lockstep, where every player simulates, or a room, where the server does. */
export type Mode = "lockstep" | "room";

export interface JoinOptions {
  game: string;
  mode: Mode;
  session: string;
  name: string;
  /** The routes to try, best first. */
  routes: RouteName[];
  /** The root key in hex where a passphrase is set. */
  key: string | null;
  players: number;
  bots: boolean;
  listed: boolean;
  /** Which of the game's scenarios it is, if it has to be begun; none: it goes on without an end of its own. */
  scenario: string | null;
  /** The seed of a new session; none: a random one. */
  seed: number | null;
  watch: boolean;
  /** The pass of a lobby session, in hex. Its host decides about everything else. */
  pass: string | null;
}

export type State =
  | "connecting"
  | "joining"
  | "waiting"
  | "catching-up"
  | "playing"
  | "watching"
  | "stalled"
  | "lost"
  | "refused"
  | "left";

export interface Status {
  state: State;
  route: RouteName | null;
  attempt: number;
  /** Both times are on the worker's clock. */
  retry_at_us: number | null;
  silent_since_us: number | null;
  why: string;
  seat: number | null;
  /** In percent. */
  progress: number;
  ticks_per_second: number;
  spectators: number;
  /** How fast a room goes, in percent: less than 100 where the server has too much to do. */
  pace: number;
  /** How often the session was begun anew: the server came back without it. */
  restarts: number;
  /** The result for the copy that was brought; none if none was, or it is not known yet. */
  brought: Brought | null;
}

/** The result for a copy: it was taken, or the server's own session counts. */
export interface Brought {
  taken: boolean;
  /** The tick of the copy. */
  ours: number;
  /** The last tick of the session. */
  theirs: number;
  /** Whether that is the session that the copy is of. */
  is_same: boolean;
}

/** What the bytes of a save say of themselves. */
export interface SaveInfo {
  game: string;
  /** The session as stores call it. */
  id: string;
  session: string;
  build: string;
  tick: number;
  seats: number;
  started_unix_ms: number;
  saved_unix_ms: number;
}

/** A status with its times on the clock that page and worker share, too. */
export interface ShownStatus extends Status {
  retry_at_ms: number | null;
  silent_since_ms: number | null;
}

export type WallName = "left" | "right" | "top" | "bottom";

export interface SeatHud {
  seat: number;
  wall: WallName;
  score: number;
  ready: boolean;
  driver: "player" | "bot" | "nobody";
  name: string | null;
  you: boolean;
}

export interface PongHud {
  game: "pong";
  phase: "waiting" | "serving" | "playing" | "pause" | "over";
  server: number | null;
  winner: number | null;
  points: number;
  /** Whether no other game follows. */
  once: boolean;
  hits: number;
  /** What is counted before a serve: 3, 2, 1. */
  countdown: number | null;
  court: { w: number; h: number };
  seats: SeatHud[];
}

export interface PersonHud {
  seat: number;
  name: string | null;
  score: number;
  deaths: number;
  alive: boolean;
  bot: boolean;
  you: boolean;
  /** Who they are, if that is known. */
  character: string | null;
}

export interface Kill {
  /** If that is known. */
  killer: number | null;
  victim: number;
  /** Seconds. */
  ago: number;
}

export interface ArenaHud {
  game: "arena";
  mode: Mode;
  phase: "playing" | "dead" | "watching";
  health: number;
  score: number;
  deaths: number;
  /** Seconds. */
  respawnIn: number | null;
  /** For how many more seconds nothing hurts the own avatar. */
  shield: number | null;
  builds: { used: number; limit: number };
  /** How many tiles a side of the map has. */
  size: number;
  /** The points that win; no end if zero. */
  points: number;
  /** The winner's seat. */
  winner: number | null;
  /** Which round it is, from 1 on. */
  round: number;
  /** In how many seconds a round begins; 0 while one is played, and after the last. */
  wait: number;
  players: PersonHud[];
  feed: Kill[];
}

export type Hud = PongHud | ArenaHud;

/** What a character has done, wherever it played. */
export interface Life {
  kills: number;
  deaths: number;
  built: number;
}

export interface Character {
  name: string;
  life: Life;
}

/** The player's identity in a room. */
export interface Who {
  /** The token for the next time: a secret of this browser. */
  token: string | null;
  /** Why the previous one was refused. */
  bad_token: string | null;
  /** The character that plays; empty where there are none. */
  active: string;
  characters: Character[];
}

export type Level = "normal" | "concerning";

export interface Reading {
  metric: string;
  value: string;
  normal: string;
  level: Level;
  verdict: string;
}

export interface Diagnostics {
  tick: number;
  /** In a room that of the newest update. */
  confirmed: number;
  /** How many ticks own inputs are ahead of that. */
  depth: number;
  verdict: string;
  readings: Reading[];
  rtt_ms: number;
  link_rtt_ms: number;
  jitter_ms: number;
  rollbacks: number;
  resimulated: number;
  omissions: number;
  skipped: number;
  network_deficit: number;
  cpu_deficit: number;
  loss_percent: number;
  bytes_in: number;
  bytes_out: number;
  agreed: number;
  mismatches: number;
  resyncs: number;
  reconnects: number;
  hash: string;
  /** What only a room has. */
  room: RoomFigures | null;
}

export interface RoomFigures {
  snapshot_bytes: number;
  bytes_per_second: number;
  /** How much there is to show yet, and how much there should be. */
  buffer_ms: number;
  delay_ms: number;
  reconciliation_ms: { last: number; mean: number; max: number };
  corrections: number;
  snaps: number;
  updates_lost: number;
  entities: number;
  frozen_ms: number;
  lead_ticks: number;
  /** How long ago everything that is kept was safe; null before it ever was. */
  saved_ms: number | null;
}

export const EVENT = { paddle: 1, wall: 2, point: 4, over: 8, serve: 16 } as const;

/** What is held, as bits. */
export const HELD = { up: 1, down: 2, left: 4, right: 8, fire: 16 } as const;

/** What is built at the pointed tile. */
export const TOOL = { none: 0, wall: 1, crate: 2, remove: 3 } as const;
export type Tool = (typeof TOOL)[keyof typeof TOOL];

/** Floats for each shape in a frame: id, kind, x, y, w, h, epoch, tint, angle, level. */
export const SHAPE_FLOATS = 10;
export const KIND = {
  ball: 0,
  paddle: 1,
  wall: 2,
  avatar: 3,
  built_wall: 4,
  crate: 5,
  preview: 6,
  bad_preview: 7,
  projectile: 8,
  ground: 9,
  camera: 10,
  rock: 11,
  shield: 12,
} as const;

export interface TickMessage {
  kind: "tick";
  tick: number;
  /** When the worker saw it, on the clock that page and worker share. */
  at_ms: number;
  frame: Float32Array<ArrayBuffer>;
  ghost: Float32Array<ArrayBuffer> | null;
  events: number;
}

/** What carriers need to know about the server. */
export interface Doors {
  /** If the page came from elsewhere. */
  hostname?: string;
  websocket: { path: string; origin?: string };
  webtransport: { port: number; cert: string | null } | null;
}

export type ToWorker =
  | { kind: "ask"; id: number; question: Question }
  /** Bots play a game for this many players; none if null. */
  | { kind: "demo"; game: string; players: number | null }
  /** `token`: the player's identity, if known. `claim`: to the seat that another page of the tab had. */
  /** `bring`: the bytes of a copy of the session, in case the server has nothing of it. */
  | {
      kind: "join";
      options: JoinOptions;
      doors: Doors;
      token: string | null;
      claim: string | null;
      bring: Uint8Array<ArrayBuffer> | null;
    }
  /** Keep a copy of the session now. */
  | { kind: "keep" }
  /** The new address of the session's host. */
  | { kind: "doors"; doors: Doors }
  /** The next connection uses this token. */
  | { kind: "come-as"; token: string }
  | { kind: "character"; name: string }
  | { kind: "controls"; held: number; x: number; y: number; tool: Tool }
  | { kind: "press" }
  | { kind: "netem"; profile: string }
  | { kind: "drop"; for_ms: number }
  | { kind: "ghost"; on: boolean }
  | { kind: "leave" };

export type Question =
  | { what: "builds" }
  /** The newest messages with the server, a line of JSON each. */
  | { what: "messages" }
  | { what: "key"; passphrase: string }
  | { what: "proof"; key: string; unix_minute: number }
  | { what: "save"; bytes: Uint8Array<ArrayBuffer> };

/** A tick of bots that play by themselves. */
export interface Exhibit {
  kind: "exhibit";
  game: string;
  tick: TickMessage;
  /** If it has changed. */
  hud: Hud | null;
}

export type FromWorker =
  | { kind: "answer"; id: number; value: string }
  | { kind: "failed"; id: number; why: string }
  | TickMessage
  /** `claim`: the claim to the player's seat, empty if none. A secret. */
  | { kind: "status"; status: ShownStatus; claim: string }
  | { kind: "hud"; hud: Hud }
  | { kind: "who"; who: Who }
  | { kind: "diagnostics"; diagnostics: Diagnostics; at_ms: number }
  | { kind: "server"; answer: unknown }
  /** A copy that was asked for is kept, or why not. */
  | { kind: "kept"; info: SaveInfo | null; why: string }
  | Exhibit
  | { kind: "done" }
  | { kind: "crash"; why: string };

/** Milliseconds on a clock that page and worker share: each has its own origin. */
export function sharedNow(): number {
  return performance.timeOrigin + performance.now();
}
