import { expect, test } from "vitest";
import type { TickMessage } from "../worker/messages";
import { Motion } from "./motion";

const TICK_MS = 1000 / 60;

const tick = (number: number, x: number, late_ms = 0, epoch = 0, angle = 0): TickMessage => ({
  kind: "tick",
  tick: number,
  at_ms: number * TICK_MS + late_ms,
  frame: Float32Array.of(7, 0, x, 0, 8, 8, epoch, -1, angle, 1),
  ghost: null,
  events: 0,
});

const x = (motion: Motion, now_ms: number) => motion.at(now_ms)?.shapes[0]?.x;

test("without a tick there is nothing to show", () => {
  expect(new Motion().at(0)).toBeNull();
});

test("the picture is one tick behind and moves evenly", () => {
  const motion = new Motion();
  for (let n = 0; n <= 10; n++) motion.add(tick(n, n * 10));
  expect(x(motion, 10 * TICK_MS)).toBeCloseTo(90);
  expect(x(motion, 10.5 * TICK_MS)).toBeCloseTo(95);
  expect(x(motion, 11 * TICK_MS)).toBeCloseTo(100);
});

test("without news the newest picture stays", () => {
  const motion = new Motion();
  motion.add(tick(0, 0));
  motion.add(tick(1, 10));
  expect(x(motion, 1e6)).toBe(10);
});

test("what turns takes the shorter way", () => {
  const motion = new Motion();
  motion.add(tick(0, 0, 0, 0, 0.2));
  motion.add(tick(1, 0, 0, 0, 2 * Math.PI - 0.2));
  expect(motion.at(1.5 * TICK_MS)?.shapes[0]?.angle).toBeCloseTo(0);
});

test("frames of a room are shown by their time, not their tick", () => {
  const motion = new Motion(30, true);
  for (let n = 0; n <= 20; n++) motion.add({ ...tick(0, n * 10), tick: n >> 1, at_ms: n * TICK_MS });
  expect(x(motion, 20 * TICK_MS)).toBeCloseTo(186);
  expect(x(motion, 20.4 * TICK_MS)).toBeCloseTo(190);
});

test("what jumps is not drawn on its way", () => {
  const motion = new Motion();
  motion.add(tick(0, 0, 0, 0));
  motion.add(tick(1, 100, 0, 1));
  expect(x(motion, 1.5 * TICK_MS)).toBe(100);
});

test("jitter of some milliseconds does not make motion uneven", () => {
  const motion = new Motion();
  let before = 0;
  for (let n = 0; n < 300; n++) {
    motion.add(tick(n, n, n % 2 ? 5 : 0));
    const now = x(motion, n * TICK_MS + 6) ?? 0;
    if (n > 100) expect(now - before).toBeCloseTo(1, 1);
    before = now;
  }
});

test("a session that begins again is shown from its beginning", () => {
  const motion = new Motion();
  for (let n = 100; n < 110; n++) expect(motion.add(tick(n, n))).toBe(false);
  expect(motion.add({ ...tick(3, 3), at_ms: 110 * TICK_MS })).toBe(true);
  expect(x(motion, 111 * TICK_MS)).toBe(3);
});

test("a trail ends where the ball jumped", () => {
  const motion = new Motion();
  motion.add(tick(0, 500, 0, 0));
  motion.add(tick(1, 1, 0, 1));
  motion.add(tick(2, 2, 0, 1));
  motion.add(tick(3, 3, 0, 1));
  expect(motion.trail(7, 2.5, 10).map(({ x }) => x)).toEqual([2, 1]);
});
