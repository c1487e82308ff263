// WebSocket: binary messages. The first each way is hello and answer, every later one carries bytes of lane 0. Extra sockets carry
// datagrams in turn, so that a packet lost on one of them does not hold up the others (docs/protocol.md, "Extra sockets").

import { randomHex } from "../hex";
import { MAX_WAITING_BYTES, type Carrier, type CarrierEvents } from "./carrier";
import type { Doors } from "./messages";

/** As many as the server takes for one link (`EXTRA_SOCKETS` in crates/wire/src/link.rs). */
const EXTRA_SOCKETS = 4;

/** A datagram that finds so many bytes waiting on its socket is dropped. */
const MAX_EXTRA_WAITING_BYTES = 16 * 1024;

export function openWebSocket(doors: Doors, hello: Uint8Array<ArrayBuffer>, events: CarrierEvents): Carrier {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const { path, origin = `${scheme}://${location.host}` } = doors.websocket;
  const name = randomHex(16);
  const socket = open(`${origin}${path}?link=${name}`);
  const extra = new ExtraSockets(`${origin}${path}?extra=${name}`, events);

  let closed = false;
  let answered = false;
  const end = (why: string) => {
    if (closed) return;
    closed = true;
    extra.close();
    socket.close();
    events.gone(why);
  };

  socket.onopen = () => socket.send(hello);
  socket.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (closed || !(data instanceof ArrayBuffer)) return;
    const bytes = new Uint8Array(data);
    if (answered) return events.stream(0, bytes);
    answered = true;
    events.answer(bytes);
    // A client that was refused has hung up by now.
    if (!closed) extra.open();
  };
  // An error is always followed by a close, which is what is reported.
  socket.onclose = () => end(answered ? "the connection was closed" : "the server cannot be reached");

  return {
    datagram: (bytes) => extra.send(bytes),
    stream(_lane, bytes) {
      if (closed || socket.readyState !== WebSocket.OPEN) return;
      if (socket.bufferedAmount > MAX_WAITING_BYTES) return end("the connection does not keep up");
      socket.send(bytes);
    },
    close() {
      closed = true;
      extra.close();
      socket.close();
    },
  };
}

/** The extra sockets of a link. One that a server or proxy refuses is missing; without any, the link's own socket carries everything. */
class ExtraSockets {
  private sockets: WebSocket[] = [];
  private usable: WebSocket[] = [];
  private turn = 0;

  constructor(
    private readonly url: string,
    private readonly events: CarrierEvents,
  ) {}

  open(): void {
    this.sockets = Array.from({ length: EXTRA_SOCKETS }, () => {
      const socket = open(this.url);
      socket.onopen = () => this.use([...this.usable, socket]);
      socket.onclose = () => this.use(this.usable.filter((other) => other !== socket));
      socket.onmessage = ({ data }: MessageEvent<unknown>) => {
        if (data instanceof ArrayBuffer) this.events.datagram(new Uint8Array(data));
      };
      return socket;
    });
  }

  send(bytes: Uint8Array<ArrayBuffer>): void {
    const socket = this.usable[this.turn++ % this.usable.length];
    if (socket && socket.bufferedAmount <= MAX_EXTRA_WAITING_BYTES) socket.send(bytes);
  }

  close(): void {
    for (const socket of this.sockets) {
      socket.onopen = socket.onclose = socket.onmessage = null;
      socket.close();
    }
    this.sockets = this.usable = [];
  }

  private use(sockets: WebSocket[]): void {
    const before = this.usable.length > 0;
    this.usable = sockets;
    if (sockets.length > 0 !== before) this.events.datagrams(!before);
  }
}

function open(url: string): WebSocket {
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  return socket;
}
