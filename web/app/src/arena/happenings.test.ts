import { expect, test } from "vitest";
import type { Shape } from "../game/motion";
import { KIND } from "../worker/messages";
import { Flashes, Happenings } from "./happenings";

const HERE = { x: 10, y: 10 };

const shape = (id: number, kind: number, more: Partial<Shape> = {}): Shape => ({
  id,
  kind,
  x: 10,
  y: 10,
  w: 1,
  h: 1,
  epoch: 0,
  tint: 0,
  angle: 0,
  level: 1,
  ...more,
});

const between = (before: Shape[], now: Shape[]) => {
  const happenings = new Happenings();
  happenings.since(before, HERE);
  return happenings.since(now, HERE).map(({ what }) => what);
};

test("the first frame is no news", () => {
  expect(new Happenings().since([shape(1, KIND.projectile)], HERE)).toEqual([]);
});

test("what comes, changes and goes is seen", () => {
  expect(between([], [shape(1, KIND.projectile)])).toEqual(["fired"]);
  expect(between([], [shape(1, KIND.built_wall)])).toEqual(["built"]);
  expect(between([shape(1, KIND.avatar)], [shape(1, KIND.avatar, { level: 0.8 })])).toEqual(["hit"]);
  expect(between([shape(1, KIND.crate)], [shape(1, KIND.crate, { level: 0.5 })])).toEqual(["chipped"]);
  expect(between([shape(1, KIND.avatar), shape(2, KIND.crate), shape(3, KIND.projectile)], [])).toEqual(["fell", "broke", "ended"]);
});

test("what is mended, comes to life or is a preview is no news", () => {
  expect(between([shape(1, KIND.avatar, { level: 0.2 })], [shape(1, KIND.avatar)])).toEqual([]);
  expect(between([], [shape(1, KIND.avatar), shape(2, KIND.preview), shape(3, KIND.rock)])).toEqual([]);
});

test("what goes out of sight has not ended", () => {
  expect(between([shape(1, KIND.avatar, { x: 40 })], [])).toEqual([]);
});

test("flashes end", () => {
  const flashes = new Flashes();
  flashes.add([{ what: "hit", x: 0, y: 0, tint: 1, angle: 0, id: 7 }], 1_000);
  expect(flashes.at(1_110)[0]?.part).toBeCloseTo(0.5);
  expect(flashes.at(1_500)).toEqual([]);
});
