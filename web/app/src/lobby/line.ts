// A connection to a gateway or a host: envelopes both ways, answers by their number, pings, and whether it is alive.

import { readEnvelope, type Envelope } from "./protocol";
import { SECOND_MS, type Socket, type World } from "./world";

/** Checked every second, so a little less than the two seconds between pings. */
const PING_MS = 2 * SECOND_MS - 200;

/** A connection that is silent for so long is dead. */
export const SILENT_MS = 5_000;

/** After a suspend of this length, silence is not the connection's fault. */
const ASLEEP_MS = 3 * SECOND_MS;

export interface Hears {
  /** The connection is open: the first message may be sent. */
  opened(): void;
  /** A message that is not an answer. */
  told(envelope: Envelope): void;
  /** The connection has ended, not closed by us. `opened`: whether it was ever open. */
  gone(opened: boolean): void;
  /** How long a ping took. */
  measured?(rtt_ms: number): void;
}

/** The connection ended before there was an answer. */
export class Cut extends Error {}

export class Line {
  private readonly socket: Socket;
  private readonly stopClock: () => void;
  private readonly asked = new Map<number, { done: (answer: Envelope) => void; failed: (why: Cut) => void }>();
  private readonly pinged = new Map<number, number>();
  private seq = 0;
  private is_open = false;
  private is_over = false;
  private heard_at_ms: number;
  private pinged_at_ms: number;
  private looked_at_ms: number;

  constructor(
    private readonly feature: "lobby" | "session",
    address: string,
    private readonly world: World,
    private readonly hears: Hears,
  ) {
    this.heard_at_ms = this.pinged_at_ms = this.looked_at_ms = world.now_ms();
    this.socket = world.open(address);
    this.socket.onopen = () => this.opened();
    this.socket.onmessage = ({ data }) => this.hear(readEnvelope(data));
    this.socket.onclose = () => this.end();
    this.stopClock = world.everySecond(() => this.look());
  }

  /** Sends a command and resolves with its answer: an `ack`, an `answer` or an `error`. */
  ask(action: string, payload: object): Promise<Envelope> {
    return new Promise((done, failed) => {
      if (this.is_over || !this.is_open) return failed(new Cut("there is no connection"));
      this.asked.set(this.say(action, payload), { done, failed });
    });
  }

  /** Sends a command that is answered by an event. Returns its number. */
  say(action: string, payload: object): number {
    const seq = ++this.seq;
    this.send({ v: 2, kind: "command", seq, feature: this.feature, action, payload });
    return seq;
  }

  close(): void {
    this.finish();
  }

  private opened(): void {
    if (this.is_over) return;
    this.is_open = true;
    this.heard_at_ms = this.world.now_ms();
    this.hears.opened();
    this.ping();
  }

  private hear(envelope: Envelope | null): void {
    if (this.is_over) return;
    this.heard_at_ms = this.world.now_ms();
    if (!envelope) return;
    const { kind, seq } = envelope;
    if (kind === "pong") return this.ponged(seq);
    const waiting = seq === undefined ? undefined : this.asked.get(seq);
    if (!waiting) return this.hears.told(envelope);
    this.asked.delete(seq as number);
    waiting.done(envelope);
  }

  private ponged(seq: number | undefined): void {
    const sent_ms = this.pinged.get(seq ?? -1);
    this.pinged.clear();
    if (sent_ms !== undefined) this.hears.measured?.(this.world.now_ms() - sent_ms);
  }

  private look(): void {
    const now_ms = this.world.now_ms();
    if (now_ms - this.looked_at_ms > ASLEEP_MS) this.heard_at_ms = now_ms;
    this.looked_at_ms = now_ms;
    if (now_ms - this.heard_at_ms >= SILENT_MS) this.end();
    else if (this.is_open && now_ms - this.pinged_at_ms >= PING_MS) this.ping();
  }

  private ping(): void {
    this.pinged_at_ms = this.world.now_ms();
    const seq = ++this.seq;
    this.pinged.set(seq, this.pinged_at_ms);
    this.send({ v: 2, kind: "ping", seq });
  }

  private send(message: object): void {
    if (!this.is_over) this.socket.send(JSON.stringify(message));
  }

  private end(): void {
    const was_open = this.is_open;
    if (this.finish()) this.hears.gone(was_open);
  }

  /** True the first time. */
  private finish(): boolean {
    if (this.is_over) return false;
    this.is_over = true;
    this.stopClock();
    this.socket.close();
    for (const { failed } of this.asked.values()) failed(new Cut("the connection was lost"));
    this.asked.clear();
    return true;
  }
}
