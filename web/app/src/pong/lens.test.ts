import { expect, test } from "vitest";
import { heldInCourt, lensFor, pointed, toCourt, toScreen, wallOnScreen } from "./lens";

const WIDE = { w: 320, h: 240 };
const SQUARE = { w: 260, h: 260 };
const DESKTOP = { w: 1200, h: 700 };
const PHONE = { w: 390, h: 780 };

test("on a wide screen the court lies as it is and fits", () => {
  const lens = lensFor(DESKTOP, WIDE, "left");
  expect(lens.turn).toBe(0);
  expect(lens.box.y).toBeGreaterThanOrEqual(12);
  expect(lens.box.y + lens.box.h).toBeLessThanOrEqual(700 - 12 + 0.01);
});

test("on a phone the own wall of a wide court is always below", () => {
  for (const own of ["left", "right"] as const) {
    const lens = lensFor(PHONE, WIDE, own);
    expect(wallOnScreen(lens, own)).toBe("bottom");
    const at = toScreen(lens, { x: own === "left" ? -160 : 160, y: 0 });
    expect(at.y).toBeCloseTo(lens.box.y + lens.box.h);
    expect(at.x).toBeCloseTo(195);
  }
});

test("a square court is never turned", () => {
  expect(lensFor(PHONE, SQUARE, "top").turn).toBe(0);
});

test("from the court to the screen and back is the same place", () => {
  for (const stage of [DESKTOP, PHONE]) {
    for (const own of ["left", "right"] as const) {
      const lens = lensFor(stage, WIDE, own);
      const there = toCourt(lens, toScreen(lens, { x: 31, y: -17 }));
      expect(there.x).toBeCloseTo(31);
      expect(there.y).toBeCloseTo(-17);
    }
  }
});

test("keys follow the screen", () => {
  const plain = lensFor(DESKTOP, WIDE, "left");
  for (const held of [0, 1, 2, 4, 8, 5, 10]) expect(heldInCourt(plain, held)).toBe(held);
  expect(heldInCourt(plain, 1 | 2)).toBe(0);
  // Left wall below: what is right on the screen is down in the court.
  expect(heldInCourt(lensFor(PHONE, WIDE, "left"), 8)).toBe(2);
  expect(heldInCourt(lensFor(PHONE, WIDE, "right"), 8)).toBe(1);
});

test("a thumb below the court moves a paddle along it", () => {
  const lens = lensFor(PHONE, WIDE, "left");
  const low = PHONE.h - 20;
  expect(pointed(lens, PHONE, { x: 195, y: low }).y).toBeCloseTo(0);
  expect(pointed(lens, PHONE, { x: 195 + lens.box.w / 2, y: low }).y).toBeCloseTo(120);
  const square = lensFor(PHONE, SQUARE, "left");
  const bottom = square.box.y + square.box.h;
  expect(pointed(square, PHONE, { x: 100, y: (bottom + PHONE.h) / 2 }).y).toBeCloseTo(0);
});
