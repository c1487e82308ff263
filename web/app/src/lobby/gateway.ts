// The page's connection to the gateway: the list of sessions, and tickets to join them. It reconnects by itself;
// requests that were pending when the connection was cut are sent again.

import { Line } from "./line";
import { randomKey, type Answer, type Asks, type Create, type Envelope, type Filter, type Join, type SessionId, type Summary } from "./protocol";
import type { World } from "./world";

const RETRIES_MS = [500, 1_000, 2_000, 4_000, 8_000];

/** How often a request is repeated while it cannot be answered: for a new session with the same key. */
const MOST_TRIES = 3;
/** Longer than a gateway that has just begun waits for its hosts: 5 s. Until then it cannot tell that there is no such session. */
const FIND_TRIES = 8;
const TRY_AGAIN_MS = 1_000;

/** The ping that is shown is the median of this many. */
const PINGS = 5;

export interface GatewaySeen {
  /** `sign-in`: players have to sign in, on another site. */
  at: "closed" | "connecting" | "open" | "gone" | "sign-in";
  /** When the next attempt is made, while the gateway is gone. */
  retry_at_ms: number;
  rtt_ms: number | null;
  /** None before the first answer. */
  sessions: Summary[] | null;
  /** There are more than the list has. */
  more: boolean;
}

export interface GatewayNeeds {
  world: World;
  /** Its address, with the proof of the passphrase. */
  address(): Promise<string>;
  /** The token of the last time. */
  token: string | null;
  /** Whether players have to sign in. */
  signsIn(): boolean;
  changed(seen: GatewaySeen): void;
}

interface Waiting {
  action: keyof Asks;
  payload: object;
  done: (answer: Answer) => void;
}

export class Gateway {
  seen: GatewaySeen = { at: "closed", retry_at_ms: 0, rtt_ms: null, sessions: null, more: false };
  private users = 0;
  private line: Line | null = null;
  /** Counts connections, so that an address that comes late opens none. */
  private run = 0;
  private failures = 0;
  private cancelRetry: (() => void) | null = null;
  private waiting = new Set<Waiting>();
  private filter: Filter | null = null;
  private pings: number[] = [];
  /** The first ping of a connection is as slow as the page that is being loaded meanwhile. */
  private is_first_ping = true;

  constructor(private readonly needs: GatewayNeeds) {}

  /** Stays connected until the returned function is called. */
  use(): () => void {
    if (this.users++ === 0) void this.connect();
    let is_used = true;
    return () => {
      if (is_used && --this.users === 0) this.hangUp();
      is_used = false;
    };
  }

  /** Tries now instead of later. */
  retry = (): void => {
    if ((this.seen.at === "gone" || this.seen.at === "sign-in") && this.users > 0) void this.connect();
  };

  /** Follows the list of sessions with this filter. */
  follow(filter: Filter): void {
    this.filter = filter;
    if (this.seen.at === "open") this.list();
  }

  /** Creates a session once, however often the request is repeated. `signal`: aborts it. */
  async create(wanted: Omit<Create, "key">, signal?: AbortSignal): Promise<Answer> {
    const create: Create = { key: randomKey(), ...wanted };
    const release = this.use();
    signal?.addEventListener("abort", release);
    const answer = await this.askAgain("create", create, MOST_TRIES, signal);
    release();
    return answer;
  }

  /**
   * A session by its link; `"none"` if the gateway knows none, and null if it cannot tell now.
   * `signal`: aborts it.
   */
  async find(session: SessionId, signal?: AbortSignal): Promise<Summary | "none" | null> {
    const { sessions, refused } = await this.askAgain("find", { session }, FIND_TRIES, signal);
    return sessions?.sessions[0] ?? (refused === "not_found" ? "none" : null);
  }

  /** `signal`: aborts it. */
  join(join: Join, signal?: AbortSignal): Promise<Answer> {
    return this.ask("join", join, signal);
  }

  /** Repeats a request, `most` times in all, while it cannot be answered. */
  private async askAgain<A extends keyof Asks>(action: A, payload: Asks[A], most: number, signal?: AbortSignal): Promise<Answer> {
    let answer = await this.ask(action, payload, signal);
    for (let tries = 1; answer.refused === "unavailable" && tries < most; tries++) {
      await new Promise<void>((done) => void this.needs.world.after(TRY_AGAIN_MS, done));
      answer = await this.ask(action, payload, signal);
    }
    return answer;
  }

  /** Resolves when there is an answer, over however many connections; never if it was aborted. */
  private ask<A extends keyof Asks>(action: A, payload: Asks[A], signal?: AbortSignal): Promise<Answer> {
    if (signal?.aborted) return new Promise(() => {});
    const release = this.use();
    return new Promise<Answer>((resolve) => {
      const done = (answer: Answer) => {
        this.waiting.delete(waiting);
        release();
        resolve(answer);
      };
      const waiting: Waiting = { action, payload, done };
      signal?.addEventListener("abort", () => {
        this.waiting.delete(waiting);
        release();
      });
      this.waiting.add(waiting);
      if (this.seen.at === "open") this.send(waiting);
    });
  }

  private async connect(): Promise<void> {
    this.cancelRetry?.();
    const run = ++this.run;
    this.show({ at: "connecting" });
    const address = await this.needs.address().catch(() => null);
    if (run !== this.run) return;
    if (address === null) return this.gone();
    const line = new Line("lobby", address, this.needs.world, {
      opened: () => void this.hello(line),
      told: (envelope) => this.hear(envelope),
      gone: () => this.gone(),
      measured: (rtt_ms) => this.measured(rtt_ms),
    });
    this.line = line;
  }

  private async hello(line: Line): Promise<void> {
    const answer = await line.ask("hello", { token: this.needs.token }).catch(() => null);
    if (!answer || line !== this.line) return;
    const you = answer.answer?.you;
    if (!you) return this.unknown(line);
    this.failures = 0;
    this.needs.token = you.token;
    this.show({ at: "open" });
    this.list();
    for (const waiting of this.waiting) this.send(waiting);
  }

  /** An invalid token is dropped and replaced, unless players sign in. */
  private unknown(line: Line): void {
    line.close();
    if (!this.needs.signsIn()) {
      this.needs.token = null;
      return this.gone();
    }
    this.line = null;
    this.show({ at: "sign-in" });
  }

  private list(): void {
    if (!this.filter) return;
    const [line, filter] = [this.line, this.filter];
    line?.ask("list", { filter, follow: true }).then(
      (envelope) => void (filter === this.filter && this.hear(envelope)),
      () => {},
    );
  }

  private send(waiting: Waiting): void {
    this.line?.ask(waiting.action, waiting.payload).then(
      ({ answer, code }) => void (this.waiting.has(waiting) && waiting.done(answer ?? { refused: code ?? "bad_payload" })),
      () => {}, // It is asked again over the next connection.
    );
  }

  private hear({ answer }: Envelope): void {
    if (answer?.sessions) this.show({ ...answer.sessions });
  }

  private measured(rtt_ms: number): void {
    if (this.is_first_ping) return void (this.is_first_ping = false);
    this.pings = [...this.pings, rtt_ms].slice(-PINGS);
    const sorted = [...this.pings].sort((a, b) => a - b);
    this.show({ rtt_ms: sorted[Math.floor(sorted.length / 2)] ?? null });
  }

  private gone(): void {
    this.line = null;
    this.pings = [];
    this.is_first_ping = true;
    const delay_ms = RETRIES_MS[this.failures++] ?? RETRIES_MS[RETRIES_MS.length - 1] ?? 0;
    this.show({ at: "gone", retry_at_ms: this.needs.world.now_ms() + delay_ms, rtt_ms: null });
    this.cancelRetry = this.needs.world.after(delay_ms, () => void this.connect());
  }

  private hangUp(): void {
    this.run++;
    this.cancelRetry?.();
    this.line?.close();
    this.line = null;
    this.failures = 0;
    this.show({ at: "closed", rtt_ms: null });
  }

  private show(change: Partial<GatewaySeen>): void {
    this.seen = { ...this.seen, ...change };
    this.needs.changed(this.seen);
  }
}
