// Drives the client: passes an event in, drains its outputs, and sets one timer for its next wake-up.

import type { Client } from "../wasm/sametick_web.js";
import { openCarrier, type Carrier } from "./carrier";
import type { Doors, FromWorker, RouteName, ShownStatus, Status, TickMessage } from "./messages";
import { sharedNow } from "./messages";

const POLL = {
  nothing: 0,
  dial: 1,
  datagram: 2,
  stream: 3,
  hang_up: 4,
  ticked: 5,
  status: 6,
  hud: 7,
  diagnostics: 8,
  done: 9,
  who: 10,
} as const;

/** More ticks than this at once are not shown one by one: the page was suspended, or is catching up. */
const MOST_TICKS_AT_ONCE = 4;

export type Post = (message: FromWorker, transfer?: Transferable[]) => void;

export function nowUs(): number {
  return performance.now() * 1000;
}

export class Pump {
  private readonly carriers = new Map<number, Carrier>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private draining = false;
  private over = false;
  private ticks: TickMessage[] = [];
  showsGhost = false;

  constructor(
    private readonly client: Client,
    /** The server's addresses; asked before every dial, because a restarted server may have changed them. */
    private readonly doors: (attempt: number) => Promise<Doors>,
    private readonly post: Post,
    private readonly crashed: (error: unknown) => void,
  ) {}

  /** Passes an event to the client, then executes its outputs. */
  tell(event: (client: Client, now_us: number) => void): void {
    if (this.over) return;
    try {
      event(this.client, nowUs());
      this.drain();
    } catch (error) {
      this.stop();
      this.crashed(error);
    }
  }

  /** The newest messages with the server, a line of JSON each; also after the end. */
  messages(): string {
    return this.client.messages(nowUs(), Date.now());
  }

  private drain(): void {
    // A carrier that fails at once reports while the client is being drained; the loop below goes on for it.
    if (this.draining) return;
    this.draining = true;
    for (let kind; (kind = this.client.poll(nowUs())) !== POLL.nothing; ) {
      this.perform(kind);
      if (kind === POLL.done) break;
    }
    this.draining = false;
    this.postTicks();
    if (!this.over) this.sleep();
  }

  private sleep(): void {
    clearTimeout(this.timer);
    const wake_at_us = this.client.wake_at();
    if (wake_at_us === Infinity) return;
    // Rounded up: a timer that fires early would only be set again.
    const delay_ms = Math.max(0, Math.ceil((wake_at_us - nowUs()) / 1000));
    this.timer = setTimeout(() => this.tell((client, now_us) => client.timeout(now_us)), delay_ms);
  }

  private perform(kind: number): void {
    const { client } = this;
    switch (kind) {
      case POLL.dial:
        return this.dial(client.attempt(), client.route() as RouteName, owned(client.bytes()));
      case POLL.datagram:
        return this.carriers.get(client.attempt())?.datagram(owned(client.bytes()));
      case POLL.stream:
        return this.carriers.get(client.attempt())?.stream(client.lane(), owned(client.bytes()));
      case POLL.hang_up:
        return this.hangUp(client.attempt());
      case POLL.ticked:
        return this.ticked();
      case POLL.status:
        return this.post({ kind: "status", status: shown(JSON.parse(client.status()) as Status), claim: client.claim() });
      case POLL.hud:
        return this.post({ kind: "hud", hud: JSON.parse(client.hud()) });
      case POLL.who:
        return this.post({ kind: "who", who: JSON.parse(client.who()) });
      case POLL.diagnostics:
        return this.post({
          kind: "diagnostics",
          diagnostics: JSON.parse(client.diagnostics()),
          at_ms: sharedNow(),
        });
      case POLL.done:
        this.stop();
        return this.post({ kind: "done" });
    }
  }

  private dial(attempt: number, route: RouteName, hello: Uint8Array<ArrayBuffer>): void {
    const gone = (why: string) => {
      this.carriers.delete(attempt);
      this.tell((client, now_us) => client.gone(now_us, attempt, why));
    };
    let wanted = true;
    // Stands in for the carrier while the addresses are fetched.
    this.carriers.set(attempt, { datagram() {}, stream() {}, close: () => (wanted = false) });
    this.doors(attempt).then(
      (doors) => {
        if (!wanted || this.over) return;
        const carrier = openCarrier(route, doors, hello, {
          answer: (bytes) => this.tell((client, now_us) => client.answer(now_us, attempt, bytes)),
          datagram: (bytes) => this.tell((client, now_us) => client.datagram(now_us, attempt, bytes)),
          datagrams: (carried) => this.tell((client, now_us) => client.datagrams(now_us, attempt, carried)),
          stream: (lane, bytes) => this.tell((client, now_us) => client.stream(now_us, attempt, lane, bytes)),
          gone,
        });
        this.carriers.set(attempt, carrier);
      },
      () => void (wanted && gone("the server cannot be reached")),
    );
  }

  private hangUp(attempt: number): void {
    this.carriers.get(attempt)?.close();
    this.carriers.delete(attempt);
  }

  private ticked(): void {
    const { client } = this;
    this.ticks.push({
      kind: "tick",
      tick: client.tick(),
      at_ms: sharedNow(),
      frame: client.frame() as Float32Array<ArrayBuffer>,
      ghost: this.showsGhost ? (client.ghost() as Float32Array<ArrayBuffer>) : null,
      events: client.events(),
    });
    if (this.ticks.length > MOST_TICKS_AT_ONCE) this.ticks.shift();
  }

  private postTicks(): void {
    for (const tick of this.ticks) {
      const transfer = [tick.frame.buffer, ...(tick.ghost ? [tick.ghost.buffer] : [])];
      this.post(tick, transfer);
    }
    this.ticks = [];
  }

  private stop(): void {
    this.over = true;
    clearTimeout(this.timer);
    for (const carrier of this.carriers.values()) carrier.close();
    this.carriers.clear();
  }
}

/** The glue hands out copies, so that nothing here lies in memory that the next call may move. */
function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes as Uint8Array<ArrayBuffer>;
}

function shown(status: Status): ShownStatus {
  const ms = (us: number | null) => (us === null ? null : performance.timeOrigin + us / 1000);
  return { ...status, retry_at_ms: ms(status.retry_at_us), silent_since_ms: ms(status.silent_since_us) };
}
