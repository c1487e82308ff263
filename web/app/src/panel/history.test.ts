import { expect, test } from "vitest";
import type { Diagnostics } from "../worker/messages";
import { History } from "./history";

const figures = (more: Partial<Diagnostics>): Diagnostics => ({
  tick: 0,
  confirmed: 0,
  depth: 3,
  verdict: "",
  readings: [],
  rtt_ms: 20,
  link_rtt_ms: 18,
  jitter_ms: 1,
  rollbacks: 0,
  resimulated: 0,
  omissions: 0,
  skipped: 0,
  network_deficit: 0,
  cpu_deficit: 0,
  loss_percent: 0,
  bytes_in: 0,
  bytes_out: 0,
  agreed: 0,
  mismatches: 0,
  resyncs: 0,
  reconnects: 0,
  hash: "",
  room: null,
  ...more,
});

test("counts become rates", () => {
  const history = new History();
  history.add(figures({ rollbacks: 10, bytes_in: 1_000 }), 0);
  history.add(figures({ rollbacks: 12, bytes_in: 3_000 }), 500);
  const [seconds, rollbacks, kb_in] = history.columns(["rollbacks", "kb_in"]);
  expect(seconds).toEqual([-0.5, 0]);
  expect(rollbacks?.[1]).toBe(4);
  expect(kb_in?.[1]).toBe(4);
});

test("a pause is a gap, and so is a count that begins again", () => {
  const history = new History();
  history.add(figures({ rollbacks: 10 }), 0);
  history.add(figures({ rollbacks: 11 }), 20_000);
  history.add(figures({ rollbacks: 0 }), 20_250);
  expect(history.columns(["rollbacks"])[1]).toEqual([null, null, null, null]);
  expect(history.columns(["depth"])[1]).toEqual([3, null, 3, 3]);
});

test("a minute is kept, not more", () => {
  const history = new History();
  for (let i = 0; i < 1_000; i++) history.add(figures({}), i * 250);
  expect(history.columns(["depth"])[0].length).toBe(248);
});
