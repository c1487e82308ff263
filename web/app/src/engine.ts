// The page's side of a worker. One is kept ready, so that a game starts without loading anything.

import type { Exhibit, FromWorker, Question, ToWorker } from "./worker/messages";

export class Engine {
  private readonly worker = new Worker(new URL("./worker/worker.ts", import.meta.url), {
    type: "module",
    name: "sametick",
  });
  private readonly asked = new Map<number, { done: (value: string) => void; failed: (why: Error) => void }>();
  private next_id = 0;
  /** The viewers of bot games, by game. */
  readonly visitors = new Map<string, (exhibit: Exhibit) => void>();
  /** Set by the page that plays with this engine. */
  listener: ((message: FromWorker) => void) | undefined;

  constructor() {
    this.worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.hear(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.hear({ kind: "crash", why: event.message || "The game's program could not be loaded." });
    };
  }

  send(message: ToWorker): void {
    this.worker.postMessage(message);
  }

  ask(question: Question): Promise<string> {
    const id = this.next_id++;
    return new Promise((done, failed) => {
      this.asked.set(id, { done, failed });
      this.send({ kind: "ask", id, question });
    });
  }

  stop(): void {
    this.listener = undefined;
    this.worker.terminate();
  }

  private hear(message: FromWorker): void {
    if (message.kind === "answer") return this.settle(message.id)?.done(message.value);
    if (message.kind === "failed") return this.settle(message.id)?.failed(new Error(message.why));
    if (message.kind === "crash") {
      const why = new Error(message.why);
      for (const { failed } of this.asked.values()) failed(why);
      this.asked.clear();
      if (spare === this) spare = undefined;
    }
    if (message.kind === "exhibit") this.visitors.get(message.game)?.(message);
    else this.listener?.(message);
  }

  private settle(id: number) {
    const waiting = this.asked.get(id);
    this.asked.delete(id);
    return waiting;
  }
}

let spare: Engine | undefined;

/** The engine for questions. */
export function spareEngine(): Engine {
  return (spare ??= new Engine());
}

/** An engine to play with: the warm one, if there is one. */
export function takeEngine(): Engine {
  const engine = spareEngine();
  spare = undefined;
  return engine;
}

/** The build ids of the games compiled in. Asked once. */
export function ownBuilds(): Promise<Record<string, string>> {
  builds ??= spareEngine()
    .ask({ what: "builds" })
    .then((json) => JSON.parse(json) as Record<string, string>)
    .catch((error: unknown) => {
      builds = undefined;
      throw error;
    });
  return builds;
}
let builds: Promise<Record<string, string>> | undefined;
