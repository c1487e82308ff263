import { expect, test } from "vitest";
import type { Shape } from "../game/motion";
import { KIND, TOOL } from "../worker/messages";
import { cursorAt } from "./reach";

const shape = (kind: number, x: number, y: number, more: Partial<Shape> = {}): Shape => ({
  id: 100 * x + y,
  kind,
  x,
  y,
  w: 0.8,
  h: 0.8,
  epoch: 0,
  tint: -1,
  angle: 0,
  level: 1,
  ...more,
});

const own = shape(KIND.avatar, 10.2, 10.5, { tint: 3 });
const ground = shape(KIND.ground, 24, 24, { w: 48, h: 48 });

const wall = (x: number, y: number, more: Shape[] = [], left = 5) =>
  cursorAt({ x, y }, TOOL.wall, own, [ground, own, ...more], left);

test("what is pointed at is a whole tile", () => {
  expect(wall(12.9, 9.1)).toEqual({ x: 12.5, y: 9.5, tool: TOOL.wall, ok: true });
});

test("nothing is built out of reach, on something, on somebody, or without anything left", () => {
  expect(wall(15.1, 10.5).ok).toBe(false);
  expect(wall(12.5, 9.5, [shape(KIND.rock, 12.5, 9.5)]).ok).toBe(false);
  expect(wall(12.5, 9.5, [shape(KIND.avatar, 13.2, 9.5)]).ok).toBe(false);
  expect(wall(12.5, 9.5, [shape(KIND.avatar, 13.6, 9.5)]).ok).toBe(true);
  expect(wall(10.5, 10.5).ok).toBe(false);
  expect(wall(12.5, 9.5, [], 0).ok).toBe(false);
});

test("only what one has built is taken away", () => {
  const remove = (more: Shape[]) => cursorAt({ x: 12.5, y: 9.5 }, TOOL.remove, own, [own, ...more], 0).ok;
  expect(remove([])).toBe(false);
  expect(remove([shape(KIND.crate, 12.5, 9.5, { tint: 3 })])).toBe(true);
  expect(remove([shape(KIND.crate, 12.5, 9.5, { tint: 1 })])).toBe(false);
});
