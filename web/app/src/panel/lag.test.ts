import { expect, test } from "vitest";
import { PRESETS, profileOf } from "./lag";

test("a lag is written as netem reads it", () => {
  expect(profileOf({ rtt_ms: 100, jitter_ms: 20, loss_percent: 5 })).toBe("rtt=100ms,jitter=20ms,loss=5%");
  expect(profileOf({ rtt_ms: 0, jitter_ms: 0, loss_percent: 5 })).toBe("loss=5%");
});

test("no lag is no text", () => {
  expect(PRESETS.map(({ lag }) => profileOf(lag))[0]).toBe("");
});
