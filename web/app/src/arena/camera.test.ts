import { expect, test } from "vitest";
import { cameraOver, isInSight, toMap, toScreen } from "./camera";

const DESKTOP = { w: 1280, h: 740 };
const PHONE = { w: 390, h: 780 };

test("an avatar far from the edges is in the middle", () => {
  const camera = cameraOver({ x: 24, y: 24 }, 48, DESKTOP);
  expect(toScreen(camera, { x: 24, y: 24 })).toEqual({ x: 640, y: 370 });
});

test("at an edge little is seen of what is beyond", () => {
  const camera = cameraOver({ x: 0.5, y: 47.5 }, 48, PHONE);
  expect(toMap(camera, { x: 0, y: 0 }).x).toBeCloseTo(-1.5);
  expect(toMap(camera, { x: 0, y: PHONE.h }).y).toBeCloseTo(49.5);
  expect(isInSight(camera, { x: 0.5, y: 47.5 }, 0)).toBe(true);
});

test("a map that is smaller than the stage is in the middle of it", () => {
  expect(cameraOver({ x: 1, y: 1 }, 16, DESKTOP).at.x).toBe(8);
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
