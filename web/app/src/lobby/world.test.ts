import { afterEach, expect, test, vi } from "vitest";
import { Line } from "./line";
import { browser } from "./world";

afterEach(() => void vi.unstubAllGlobals());

test("an address that the browser refuses is unreachable", async () => {
  vi.stubGlobal("WebSocket", class {
    constructor() {
      throw new DOMException("insecure", "SecurityError");
    }
  });
  const world = { ...browser, now_ms: () => 0, everySecond: () => () => {} };
  const was_open = await new Promise((gone) => new Line("session", "ws://host", world, { opened() {}, told() {}, gone }));
  expect(was_open).toBe(false);
});
