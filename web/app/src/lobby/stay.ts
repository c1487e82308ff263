// Membership in a session as a state machine: joining, the view, disconnects and reconnects, and the end.

import { isBarred, originOf } from "./address";
import { Line } from "./line";
import { Chat, type Said } from "./chat";
import type {
  Answer,
  Closing,
  Ending,
  Envelope,
  Forward,
  Go,
  Join,
  Offer,
  PlayerId,
  Requests,
  SessionEvent,
  SessionId,
  View,
  Welcome,
} from "./protocol";
import { applied, personOf } from "./view";
import type { World } from "./world";

/** How long the seat of a disconnected member is kept. */
export const WINDOW_MS = 60_000;

/** How long to wait for a host that restarts. */
const SUSPENDED_MS = 10 * 60_000;

const RETRIES_MS = [0, 500, 1_000, 2_000, 3_000, 4_000, 5_000];

/** How many times the host itself is tried first; after that the gateway is asked for its address every other time. */
const HOST_ALONE = 2;

/** How long to wait for the gateway's answer during a reconnect. */
const GATEWAY_MS = 5_000;

/** Why the player is not in a session, or no longer. `barred`: the page may not connect to the host, for it came over an encrypted connection and the host has none. */
export type Why = "left" | "kicked" | "banned" | "elsewhere" | "released" | "lost" | "barred" | Ending;

export type State =
  /** Nothing was requested yet. */
  | { at: "door"; refused: string | null }
  /** Joining. */
  | { at: "entering" }
  | { at: "in" }
  /** Disconnected, or the host restarts. `until_ms`: the seat is kept at least until then. */
  | { at: "away"; suspended: boolean; until_ms: number; retry_at_ms: number | null }
  | { at: "out"; why: Why };

export interface StaySeen {
  state: State;
  session: SessionId;
  /** The latest view. */
  view: View | null;
  you: PlayerId | null;
  offer: Offer | null;
  /** The host's address. */
  address: string;
  chat: Said[];
}

/** The token for a return after a reload. */
export interface Kept {
  player: PlayerId;
  token: string;
  address: string;
  name: string;
}

export interface Memory {
  read(session: SessionId): Kept | null;
  write(session: SessionId, kept: Kept | null): void;
}

export interface StayNeeds {
  world: World;
  memory: Memory;
  page: Pick<Location, "protocol" | "hostname" | "host">;
  /** For the query of the host's socket: the proof of the passphrase. */
  query(): Promise<string>;
  join(join: Join, signal: AbortSignal): Promise<Answer>;
  changed(seen: StaySeen): void;
  /** The session has another id now. */
  moved(session: SessionId): void;
}

type Key = { ticket: string } | { token: string; player: PlayerId };

export class Stay {
  seen: StaySeen;
  private line: Line | null = null;
  private run = 0;
  private failures = 0;
  private cancelRetry: (() => void) | null = null;
  private kept: Kept | null = null;
  /** The password that was typed: joining again needs it. */
  private typed: { name: string; password: string | null } = { name: "", password: null };
  private ticket_failed = false;
  private asking = new AbortController();
  private readonly chat = new Chat();

  constructor(
    session: SessionId,
    private readonly needs: StayNeeds,
  ) {
    this.seen = { state: { at: "door", refused: null }, session, view: null, you: null, offer: null, address: "", chat: [] };
  }

  /** Joins with a ticket, or returns with the stored token; otherwise waits for the form. */
  begin(name: string, go: Go | null): void {
    this.typed.name = name;
    this.kept = this.needs.memory.read(this.seen.session);
    if (go) return this.enter(go);
    if (!this.kept) return;
    this.show({ state: { at: "entering" }, address: this.kept.address });
    this.dial(this.kept);
  }

  /** Asks to join. */
  async join(name: string, password: string | null): Promise<void> {
    this.typed = { name, password };
    this.halt();
    const run = ++this.run;
    // A player who is not in the session sees nothing of it until they have joined.
    const { at } = this.seen.state;
    const is_out = at === "out" || at === "door";
    this.show({ state: { at: "entering" }, ...(is_out && { view: null, offer: null }) });
    const answer = await this.askGateway();
    if (run === this.run) this.answered(answer);
  }

  /** Joins as a member, without the password. A player who is no longer a member gets the form, as a new player does. */
  async joinAsMember(name: string): Promise<void> {
    await this.join(name, null);
    const { state } = this.seen;
    if (state.at === "door" && state.refused === "not_found") this.show({ state: { at: "door", refused: null } });
  }

  /** Joins again. A player who is no longer a member, and typed no password on this page, is asked for it first. */
  again = (): void => {
    this.ticket_failed = false;
    const { state, view } = this.seen;
    const is_member = state.at !== "out" || state.why === "elsewhere" || state.why === "moved";
    if (view?.locked && !is_member && this.typed.password === null) return this.show({ state: { at: "door", refused: null } });
    void this.join(this.typed.name, this.typed.password);
  };

  /** Tries to reconnect, once more or now. */
  retry = (): void => {
    const { state } = this.seen;
    if (state.at === "out" && state.why === "lost") this.cutOff();
    else if (state.at === "away" && state.retry_at_ms !== null) this.tryAgain();
  };

  /** Resolves with nothing on success, else with the refusal. */
  async request<R extends keyof Requests>(action: R, payload: Requests[R]): Promise<string | null> {
    if (this.seen.state.at !== "in" || !this.line) return "cut";
    try {
      const { kind, code } = await this.line.ask(action, payload);
      return kind === "error" ? (code ?? "bad_payload") : null;
    } catch {
      return "cut";
    }
  }

  /** Leaves for good, if the connection allows it. */
  leave(): void {
    void this.request("leave", {});
    this.needs.memory.write(this.seen.session, null);
    this.end();
  }

  /** Closes the connection without leaving: the seat is kept. */
  end(): void {
    this.run++;
    this.halt();
  }

  private enter({ session, address, ticket }: Forward): void {
    if (session !== this.seen.session) {
      this.needs.memory.write(this.seen.session, null);
      this.kept = null;
      this.needs.moved(session);
    }
    this.show({ session, address });
    if (ticket === null) return this.find();
    if (this.seen.state.at !== "away") this.show({ state: { at: "entering" } });
    this.dial({ ticket });
  }

  /** The session has moved, and there is no ticket for us. A member keeps asking for one while the seat is kept. */
  private find(): void {
    const { at } = this.seen.state;
    if (at === "entering") return this.again();
    this.halt();
    if (at === "in") this.wait();
    void this.askWhere();
  }

  private answered({ go, refused }: Answer): void {
    if (go) return this.enter(go);
    if (refused === "quarantined") return this.show({ state: { at: "out", why: "quarantined" } });
    this.show({ state: { at: "door", refused: refused ?? "unavailable" } });
  }

  private askGateway(): Promise<Answer> {
    const { name, password } = this.typed;
    return this.needs.join({ session: this.seen.session, name, password, seat: null }, this.asking.signal);
  }

  private dial(key: Key): void {
    this.halt();
    const run = ++this.run;
    void this.needs.query().catch(() => "").then((query) => {
      if (run !== this.run) return;
      const origin = originOf(this.seen.address, this.needs.page);
      if (!origin) return this.failed();
      if (isBarred(origin, this.needs.page)) return this.out("barred");
      const line = new Line("session", `${origin}/api/session/ws${query}`, this.needs.world, {
        opened: () => this.present(line, key),
        told: (envelope) => void (line === this.line && this.hear(envelope)),
        gone: () => void (line === this.line && this.gone()),
      });
      this.line = line;
    });
  }

  private present(line: Line, key: Key): void {
    if ("ticket" in key) line.say("arrive", { ticket: key.ticket });
    else line.say("resume", { session: this.seen.session, player: key.player, token: key.token });
  }

  private hear({ event, closing, kind, code }: Envelope): void {
    if (closing) return this.closed(closing);
    if (event) return this.happened(event);
    // An answer to the first message that is neither welcome nor closing: it was not understood.
    if (kind === "error" && this.seen.state.at !== "in") this.refused(code ?? "bad_payload");
  }

  private refused(code: string): void {
    this.halt();
    this.show({ state: { at: "door", refused: code } });
  }

  private happened(event: SessionEvent): void {
    // A member without a welcome yet is told the new host as well.
    if (event.moved) return this.enter(event.moved);
    if (event.welcome) this.welcomed(event.welcome);
    const { view } = this.seen;
    if (!view) return;
    this.chat.hear(view, event);
    const change: Partial<StaySeen> = { view: applied(view, event), chat: this.chat.lines };
    if (event.play !== undefined) change.offer = event.play;
    this.show(change);
  }

  private welcomed({ you, resumeToken, view }: Welcome): void {
    this.failures = 0;
    this.ticket_failed = false;
    const { address } = this.seen;
    this.kept = { player: you, token: resumeToken, address, name: view.settings.name };
    this.typed.name = personOf(view, you)?.name ?? this.typed.name;
    this.needs.memory.write(view.session, this.kept);
    // A new `play` follows; the known one may be of another host.
    const offer = view.phase === "running" ? this.seen.offer : null;
    this.show({ state: { at: "in" }, session: view.session, you, view, offer });
  }

  private closed(closing: Closing): void {
    this.halt();
    if (closing === "bad_ticket") return this.badTicket();
    if (closing === "suspended") return this.suspended();
    this.needs.memory.write(this.seen.session, null);
    this.kept = null;
    if (closing === "came_back") return this.out("elsewhere");
    if (closing === "bad_token") return this.out("released");
    this.out(typeof closing === "string" ? closing : closing.over);
  }

  /** The ticket may have expired meanwhile: another one is requested, once. */
  private badTicket(): void {
    if (this.seen.state.at === "away") return this.failed();
    if (this.ticket_failed) return this.refused("bad_ticket");
    this.ticket_failed = true;
    void this.join(this.typed.name, this.typed.password);
  }

  private suspended(): void {
    const { state } = this.seen;
    // The host says so to every member while it stops: no reason to retry faster.
    if (state.at === "away" && state.suspended) return this.failed();
    const until_ms = this.needs.world.now_ms() + SUSPENDED_MS;
    this.show({ state: { at: "away", suspended: true, until_ms, retry_at_ms: null } });
    this.schedule();
  }

  private gone(): void {
    this.line = null;
    if (this.seen.state.at === "away") this.failed();
    else this.cutOff();
  }

  private cutOff(): void {
    this.wait();
    this.schedule();
  }

  /** From now on the seat is kept for us. */
  private wait(): void {
    this.failures = 0;
    const until_ms = this.needs.world.now_ms() + WINDOW_MS;
    this.show({ state: { at: "away", suspended: false, until_ms, retry_at_ms: null } });
  }

  private failed(): void {
    this.halt();
    if (this.seen.state.at !== "away") return this.cutOff();
    this.failures++;
    this.schedule();
  }

  private schedule(): void {
    const { state } = this.seen;
    if (state.at !== "away") return;
    const now_ms = this.needs.world.now_ms();
    if (now_ms >= state.until_ms) return this.out("lost");
    const delay_ms = RETRIES_MS[this.failures] ?? RETRIES_MS[RETRIES_MS.length - 1] ?? 0;
    const retry_at_ms = Math.min(now_ms + delay_ms, state.until_ms);
    this.show({ state: { ...state, retry_at_ms } });
    this.cancelRetry = this.needs.world.after(retry_at_ms - now_ms, () => this.tryAgain());
  }

  private tryAgain(): void {
    const { state } = this.seen;
    if (state.at !== "away") return;
    this.halt();
    this.show({ state: { ...state, retry_at_ms: null } });
    const asks_host = this.kept && (this.failures < HOST_ALONE || this.failures % 2 === 1);
    if (asks_host && this.kept) this.dial(this.kept);
    else void this.askWhere();
  }

  /** The session may have moved: the gateway knows its host. */
  private async askWhere(): Promise<void> {
    const run = ++this.run;
    const { world } = this.needs;
    const late = new Promise<null>((done) => world.after(GATEWAY_MS, () => done(null)));
    const answer = await Promise.race([this.askGateway(), late]);
    if (run !== this.run) return;
    const refused = answer?.refused;
    if (answer?.go) this.enter(answer.go);
    else if (refused === "banned" || refused === "quarantined") this.out(refused);
    else this.failed();
  }

  private out(why: Why): void {
    this.halt();
    this.show({ state: { at: "out", why }, offer: null });
  }

  /** Stops all timers and connections. */
  private halt(): void {
    this.cancelRetry?.();
    this.cancelRetry = null;
    this.asking.abort();
    this.asking = new AbortController();
    this.line?.close();
    this.line = null;
  }

  private show(change: Partial<StaySeen>): void {
    this.seen = { ...this.seen, ...change };
    this.needs.changed(this.seen);
  }
}
