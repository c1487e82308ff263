import { expect, test } from "vitest";
import type { Shape } from "../game/motion";
import { KIND } from "../worker/messages";
import { OwnShots } from "./shots";

const OWN = 3;

const shape = (kind: number, x: number, y: number, tint = -1): Shape => ({
  id: 1000 * x + y,
  kind,
  x,
  y,
  w: 0.8,
  h: 0.8,
  epoch: 0,
  tint,
  angle: 0,
  level: 1,
});

const own = shape(KIND.avatar, 10, 10.5, OWN);

/** Where the own shot is after so long, among other things. */
const shotAfter = (ms: number, others: Shape[] = []) => {
  const shots = new OwnShots();
  shots.fire({ ...own }, 0);
  const drawn = shots.among([own, ...others], OWN, ms);
  return drawn.find(({ kind }) => kind === KIND.projectile)?.x;
};

test("an own shot flies from the trigger for a shot's lifetime", () => {
  expect(shotAfter(0)).toBeCloseTo(10);
  expect(shotAfter(500)).toBeCloseTo(17);
  expect(shotAfter(1_300)).toBeUndefined();
});

test("a shot ends at an obstacle, but not at its own avatar", () => {
  expect(shotAfter(500, [shape(KIND.rock, 12.5, 10.5)])).toBeUndefined();
  expect(shotAfter(500, [shape(KIND.avatar, 13, 10.3, 1)])).toBeUndefined();
  expect(shotAfter(500, [shape(KIND.avatar, 13, 12, 1)])).toBeCloseTo(17);
});

test("the server's version of an own shot is not drawn twice", () => {
  const told = [shape(KIND.projectile, 11, 10.5, OWN), shape(KIND.projectile, 20, 20, 1)];
  const drawn = new OwnShots().among(told, OWN, 0);
  expect(drawn).toEqual([told[1]]);
});
