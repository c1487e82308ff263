// What the page and its worker say to each other, and the JSON that the wasm client speaks.

export type RouteName = "webtransport" | "websocket";

export interface JoinOptions {
  game: string;
  session: string;
  name: string;
  /** The routes to try, best first. */
  routes: RouteName[];
  /** The root key in hex where a passphrase is set. */
  key: string | null;
  players: number;
  bots: boolean;
  listed: boolean;
  watch: boolean;
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
  watchers: number;
  /** How often the session was begun anew: the server came back without it. */
  restarts: number;
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

export interface Hud {
  game: string;
  phase: "waiting" | "serving" | "playing" | "pause" | "over";
  server: number | null;
  winner: number | null;
  points: number;
  hits: number;
  court: { w: number; h: number };
  seats: SeatHud[];
}

export interface Reading {
  metric: string;
  value: string;
  normal: string;
  level: "normal" | "concerning";
  verdict: string;
}

export interface Diagnostics {
  tick: number;
  confirmed: number;
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
}

export const EVENT = { paddle: 1, wall: 2, point: 4, over: 8, serve: 16 } as const;

/** Floats for each shape in a frame: id, kind, x, y, w, h, epoch, tint. */
export const SHAPE_FLOATS = 8;
export const KIND = { ball: 0, paddle: 1, wall: 2 } as const;

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
  websocket: { path: string };
  webtransport: { port: number; cert: string | null } | null;
}

export type ToWorker =
  | { kind: "ask"; id: number; question: Question }
  /** Bots play by themselves, for so many players; nobody does if null. */
  | { kind: "demo"; players: number | null }
  | { kind: "join"; options: JoinOptions; doors: Doors }
  | { kind: "controls"; held: number; x: number; y: number }
  | { kind: "press" }
  | { kind: "netem"; profile: string }
  | { kind: "drop"; for_ms: number }
  | { kind: "ghost"; on: boolean }
  | { kind: "leave" };

export type Question =
  | { what: "builds" }
  | { what: "key"; passphrase: string }
  | { what: "proof"; key: string; unix_minute: number };

export type FromWorker =
  | { kind: "answer"; id: number; value: string }
  | { kind: "failed"; id: number; why: string }
  | TickMessage
  | { kind: "status"; status: ShownStatus }
  | { kind: "hud"; hud: Hud }
  | { kind: "diagnostics"; diagnostics: Diagnostics; at_ms: number }
  | { kind: "server"; answer: unknown }
  | { kind: "done" }
  | { kind: "crash"; why: string };

/** Milliseconds on a clock that page and worker share: each has its own origin. */
export function sharedNow(): number {
  return performance.timeOrigin + performance.now();
}
