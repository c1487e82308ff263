// Sockets and timers for the connections of lobby and sessions. Tests replace them.

import { sharedNow } from "../worker/messages";

export interface Socket {
  send(text: string): void;
  close(): void;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: (() => void) | null;
}

export interface World {
  open(address: string): Socket;
  now_ms(): number;
  /** Does something later, unless the returned function is called before. */
  after(delay_ms: number, act: () => void): () => void;
  /** Does something every second until the returned function is called. */
  everySecond(act: () => void): () => void;
}

export const SECOND_MS = 1_000;

/** The browser's. Its seconds come from a worker: browsers throttle timers of hidden pages to minutes. */
export const browser: World = {
  open(address) {
    try {
      return new WebSocket(address) as unknown as Socket;
    } catch {
      return unopened();
    }
  },
  now_ms: sharedNow,
  after(delay_ms, act) {
    const timer = setTimeout(act, delay_ms);
    return () => clearTimeout(timer);
  },
  everySecond(act) {
    clock ??= new Worker(new URL("./clock.ts", import.meta.url), { type: "module", name: "clock" });
    clock.addEventListener("message", act);
    return () => clock?.removeEventListener("message", act);
  },
};

/** Browsers refuse some addresses at once: those are hosts that cannot be reached. */
function unopened(): Socket {
  const socket: Socket = { send() {}, close() {}, onopen: null, onmessage: null, onclose: null };
  queueMicrotask(() => socket.onclose?.());
  return socket;
}

let clock: Worker | undefined;
