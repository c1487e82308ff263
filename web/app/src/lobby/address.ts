// Addresses of hosts: `wss://NAME:PORT`, or `:PORT` for the name and the scheme that the page came from.

import type { Doors } from "../worker/messages";
import type { Offer } from "./protocol";

type Page = Pick<Location, "protocol" | "hostname" | "host">;

/** Without a path. Null if it is not an address. */
export function originOf(address: string, page: Page): string | null {
  const scheme = page.protocol === "https:" ? "wss:" : "ws:";
  const whole = /^:\d{1,5}$/.test(address) ? `${scheme}//${page.hostname}${address}` : address;
  if (!/^wss?:\/\/[^/?#@]+$/.test(whole)) return null;
  try {
    const url = new URL(whole);
    return `${url.protocol}//${url.host}`;
  } catch {
    return null;
  }
}

/** Whether browsers forbid the connection: an encrypted page may open no unencrypted one, except to its own machine. */
export function isBarred(origin: string, page: Pick<Page, "protocol">): boolean {
  const { protocol, hostname } = new URL(origin);
  return page.protocol === "https:" && protocol === "ws:" && !/^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
}

/** The gateway: it is where the page came from. */
export function gatewayOf(page: Page): string {
  return `${page.protocol === "https:" ? "wss:" : "ws:"}//${page.host}`;
}

/** Whether a host is on the machine that the page came from: then it is as far away as the gateway. */
export function isHere(address: string, page: Page): boolean {
  const origin = originOf(address, page);
  return origin !== null && new URL(origin).hostname === page.hostname;
}

/** The address of a session's game. */
export function doorsOf(offer: Offer, address: string, page: Page): Doors | null {
  const origin = originOf(address, page);
  if (!origin) return null;
  const { protocol, hostname, port } = new URL(origin);
  return {
    hostname,
    websocket: { path: "/ws", origin: `${protocol}//${hostname}:${offer.websocket ?? port}` },
    webtransport: offer.webtransport && { ...offer.webtransport },
  };
}
