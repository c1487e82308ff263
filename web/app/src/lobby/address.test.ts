import { expect, test } from "vitest";
import { doorsOf, gatewayOf, isBarred, isHere, originOf } from "./address";
import type { Offer } from "./protocol";

const PAGE = { protocol: "https:", hostname: "game.example", host: "game.example:8443" };
const PLAIN = { protocol: "http:", hostname: "[::1]", host: "[::1]:8080" };

test("an address is whole, or a port of where the page came from", () => {
  expect(originOf(":8081", PAGE)).toBe("wss://game.example:8081");
  expect(originOf(":8081", PLAIN)).toBe("ws://[::1]:8081");
  expect(originOf("wss://other.example:8081", PAGE)).toBe("wss://other.example:8081");
  expect(gatewayOf(PAGE)).toBe("wss://game.example:8443");
});

test("what is no address leads nowhere", () => {
  for (const address of ["", "8081", ":x", ":123456", "https://a:1", "ws://a:1/x", "ws://u@a:1", "ws://a:1?x", "javascript:1", "ws://"]) {
    expect(originOf(address, PAGE)).toBeNull();
  }
});

test("an encrypted page connects unencrypted only to its own machine", () => {
  const barred = (origin: string, page: typeof PAGE) => isBarred(origin, page);
  expect(["ws://other.example:8081", "ws://192.168.0.2:1"].map((origin) => barred(origin, PAGE))).toEqual([true, true]);
  expect(["wss://other.example:8081", "ws://localhost:1", "ws://127.0.0.1:1", "ws://[::1]:1"].some((origin) => barred(origin, PAGE))).toBe(false);
  expect(barred("ws://other.example:8081", PLAIN)).toBe(false);
});

test("hosts on the page's machine are as far away as its gateway", () => {
  expect([isHere(":1", PAGE), isHere("wss://game.example:9", PAGE), isHere("wss://other:9", PAGE)]).toEqual([true, true, false]);
});

test("the game is at the host of the session, on its own ports", () => {
  const offer: Offer = { game: "pong", mode: "lockstep", place: "p", pass: "00", seat: 0, websocket: 8090, webtransport: { port: 8091, cert: null }, native: [] };
  expect(doorsOf(offer, "wss://other.example:8081", PAGE)).toEqual({
    hostname: "other.example",
    websocket: { path: "/ws", origin: "wss://other.example:8090" },
    webtransport: { port: 8091, cert: null },
  });
  expect(doorsOf({ ...offer, websocket: null }, ":8081", PAGE)?.websocket.origin).toBe("wss://game.example:8081");
  expect(doorsOf({ ...offer, webtransport: null }, ":8081", PLAIN)?.websocket.origin).toBe("ws://[::1]:8090");
});
