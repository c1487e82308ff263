// A carrier moves the bytes of one connection attempt. It does not interpret them, and has no time-outs:
// the client has them, and closes the carrier.

import type { Doors, RouteName } from "./messages";
import { openWebSocket } from "./websocket";
import { openWebTransport } from "./webtransport";

/** What a carrier reports. After `gone`, nothing more. */
export interface CarrierEvents {
  answer(bytes: Uint8Array): void;
  datagram(bytes: Uint8Array): void;
  /** Whether a WebSocket has extra sockets for datagrams from now on. */
  datagrams(carried: boolean): void;
  stream(lane: number, bytes: Uint8Array): void;
  gone(why: string): void;
}

export interface Carrier {
  datagram(bytes: Uint8Array<ArrayBuffer>): void;
  stream(lane: number, bytes: Uint8Array<ArrayBuffer>): void;
  /** Sends what is still waiting and ends. Nothing is reported after this. */
  close(): void;
}

/** So many bytes may wait to be sent; a connection with more does not keep up and is given up. */
export const MAX_WAITING_BYTES = 256 * 1024;

export function openCarrier(
  route: RouteName,
  doors: Doors,
  hello: Uint8Array<ArrayBuffer>,
  events: CarrierEvents,
): Carrier {
  const once = endingOnce(events);
  return route === "webtransport"
    ? openWebTransport(doors, hello, once)
    : openWebSocket(doors, hello, once);
}

/** The same events, of which `gone` is reported once and nothing after it. */
export function endingOnce(events: CarrierEvents): CarrierEvents {
  let over = false;
  return {
    answer: (bytes) => void (over || events.answer(bytes)),
    datagram: (bytes) => void (over || events.datagram(bytes)),
    datagrams: (carried) => void (over || events.datagrams(carried)),
    stream: (lane, bytes) => void (over || events.stream(lane, bytes)),
    gone(why) {
      if (over) return;
      over = true;
      events.gone(why);
    },
  };
}
