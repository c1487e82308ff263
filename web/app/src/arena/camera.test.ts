import { expect, test } from "vitest";
import { cameraOver, isInSight, keptOn, toMap, toScreen } from "./camera";

const DESKTOP = { w: 1280, h: 740 };
const PHONE = { w: 390, h: 780 };

test("an avatar far from the edges is in the middle", () => {
  const camera = cameraOver({ x: 24, y: 24 }, 48, DESKTOP);
  expect(toScreen(camera, { x: 24, y: 24 })).toEqual({ x: 640, y: 370 });
});

test("an avatar at the map's edge is away from the stage's edge", () => {
  const camera = cameraOver({ x: 0, y: 48 }, 48, PHONE);
  expect(toScreen(camera, { x: 0, y: 48 }).x / PHONE.w).toBeCloseTo(0.28);
  expect(toScreen(camera, { x: 0, y: 48 }).y / PHONE.h).toBeCloseTo(0.72);
  expect(isInSight(camera, { x: 0, y: 48 }, 0)).toBe(true);
  expect(isInSight(camera, { x: 30, y: 48 }, 1)).toBe(false);
});

test("of a map that is smaller than the stage, the middle is shown", () => {
  expect(keptOn(1, 10, 60, 0.28)).toBe(5);
});

test("a map of which nothing is known does not hold the camera", () => {
  expect(cameraOver({ x: -3, y: 99 }, 0, PHONE).at).toEqual({ x: -3, y: 99 });
});

test("from the map to the screen and back is the same place", () => {
  const camera = cameraOver({ x: 10, y: 30 }, 48, PHONE);
  const there = toMap(camera, toScreen(camera, { x: 12.25, y: 28.5 }));
  expect(there.x).toBeCloseTo(12.25);
  expect(there.y).toBeCloseTo(28.5);
});
