import { expect, test } from "vitest";
import type { Diagnostics, RoomFigures } from "../worker/messages";
import { History } from "./history";
import { ALL_IS_WELL, explained } from "./room";

const ROOM: RoomFigures = {
  snapshot_bytes: 140,
  bytes_per_second: 1_400,
  buffer_ms: 62,
  delay_ms: 110,
  reconciliation_ms: { last: 0, mean: 2.25, max: 18 },
  corrections: 3,
  snaps: 1,
  updates_lost: 2,
  entities: 57,
  frozen_ms: 120,
  lead_ticks: 4,
  saved_ms: 1_400,
};

/** Of all figures, those that are looked at here. */
const figures = (room: Partial<RoomFigures> = {}, loss_percent = 0) =>
  ({ link_rtt_ms: 40, jitter_ms: 2, omissions: 0, loss_percent, room: { ...ROOM, ...room } }) as Diagnostics & {
    room: RoomFigures;
  };

/** The verdict on a room from figures of some seconds ago and of now. */
const said = (before: ReturnType<typeof figures>, now: ReturnType<typeof figures>) => {
  const history = new History();
  [before, before, now].forEach((diagnostics, i) => history.add(diagnostics, i * 1_000));
  return explained(now, now.room, history);
};

test("a room that is fine says so, in every figure", () => {
  const { readings, verdict } = said(figures(), figures());
  expect(verdict).toBe(ALL_IS_WELL);
  expect(readings.every(({ level, verdict }) => level === "normal" && verdict.endsWith("."))).toBe(true);
  const value = (name: string) => readings.find(({ metric }) => metric === name)?.value;
  expect(value("snapshot")).toBe("140 bytes");
  expect(value("saved")).toBe("1.4 s ago");
  expect(value("interpolation_buffer")).toBe("62 ms of 110 ms");
  expect(value("reconciliation_error")).toBe("0 ms (mean 2.3 ms, most 18 ms)");
});

test("what is wrong is said in a sentence", () => {
  const worry = (now: ReturnType<typeof figures>) => said(figures(), now).verdict;
  expect(worry(figures({ updates_lost: 8 }))).toMatch(/Updates are lost/);
  expect(worry(figures({ frozen_ms: 600 }))).toMatch(/others stand still/);
  expect(worry(figures({ snaps: 9 }))).toMatch(/jumps/);
  expect(worry(figures({ snapshot_bytes: 990 }))).toMatch(/as large as they may be/);
  expect(worry(figures({ reconciliation_ms: { last: 50, mean: 45, max: 90 } }))).toMatch(/says otherwise/);
  expect(worry(figures({}, 5))).toMatch(/Packets are lost/);
});
