// A world for tests: sockets without a network, and a clock that is moved by hand.

import type { Envelope } from "./protocol";
import { SECOND_MS, type Socket, type World } from "./world";

interface Command {
  seq: number;
  action: string;
  payload: Record<string, unknown>;
}

export class TestSocket implements Socket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: (() => void) | null = null;
  closed = false;
  readonly sent: Record<string, unknown>[] = [];

  constructor(readonly address: string) {}

  send(text: string): void {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }

  close(): void {
    this.closed = true;
  }

  tell(envelope: Partial<Envelope>): void {
    this.onmessage?.({ data: JSON.stringify({ v: 2, ...envelope }) });
  }

  /** Answers the last ping. */
  pong(): void {
    const ping = this.sent.filter(({ kind }) => kind === "ping").at(-1);
    if (ping) this.tell({ kind: "pong", seq: ping.seq as number });
  }

  pings(): number {
    return this.sent.filter(({ kind }) => kind === "ping").length;
  }

  commands(): Command[] {
    return this.sent.filter(({ kind }) => kind === "command") as unknown as Command[];
  }

  get last(): Command | undefined {
    return this.commands().at(-1);
  }
}

export class TestWorld implements World {
  readonly sockets: TestSocket[] = [];
  private now = 1_000_000;
  private readonly timers = new Set<{ at_ms: number; act: () => void }>();
  private readonly seconds = new Set<() => void>();

  open(address: string): TestSocket {
    const socket = new TestSocket(address);
    this.sockets.push(socket);
    return socket;
  }

  get newest(): TestSocket {
    const socket = this.sockets.at(-1);
    if (!socket) throw new Error("nothing was opened");
    return socket;
  }

  now_ms(): number {
    return this.now;
  }

  after(delay_ms: number, act: () => void): () => void {
    const timer = { at_ms: this.now + delay_ms, act };
    this.timers.add(timer);
    return () => this.timers.delete(timer);
  }

  everySecond(act: () => void): () => void {
    this.seconds.add(act);
    return () => this.seconds.delete(act);
  }

  /** Lets time pass in small steps. */
  pass(ms: number): void {
    for (const end = this.now + ms; this.now < end; ) {
      this.now += 10;
      for (const timer of [...this.timers]) {
        if (timer.at_ms > this.now || !this.timers.delete(timer)) continue;
        timer.act();
      }
      if (this.now % SECOND_MS === 0) for (const act of [...this.seconds]) act();
    }
  }

  /** Time passes, and nothing happens. */
  sleep(ms: number): void {
    this.now += ms;
  }

  /** Lets time pass, and runs pending promises. */
  async settle(ms = 0): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    for (let left = ms; left > 0; left -= 10) {
      this.pass(10);
      for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    }
  }
}
