// WebSocket: binary messages. The first each way is hello and answer, every later one carries bytes of lane 0.

import { MAX_WAITING_BYTES, type Carrier, type CarrierEvents } from "./carrier";
import type { Doors } from "./messages";

export function openWebSocket(doors: Doors, hello: Uint8Array<ArrayBuffer>, events: CarrierEvents): Carrier {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const { path, origin = `${scheme}://${location.host}` } = doors.websocket;
  const socket = new WebSocket(origin + path);
  socket.binaryType = "arraybuffer";

  let closed = false;
  let answered = false;
  const end = (why: string) => {
    if (closed) return;
    closed = true;
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
  };
  // An error is always followed by a close, which is what is reported.
  socket.onclose = () => end(answered ? "the connection was closed" : "the server cannot be reached");

  return {
    // A WebSocket has no datagrams; the client knows and sends none.
    datagram() {},
    stream(_lane, bytes) {
      if (closed || socket.readyState !== WebSocket.OPEN) return;
      if (socket.bufferedAmount > MAX_WAITING_BYTES) return end("the connection does not keep up");
      socket.send(bytes);
    },
    close() {
      closed = true;
      socket.close();
    },
  };
}
