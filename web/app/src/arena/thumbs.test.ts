import { expect, test } from "vitest";
import { HELD } from "../worker/messages";
import { heldBy, knobOf, STICK_PX, walks } from "./thumbs";

const PHONE = { w: 390, h: 780 };

test("a stick has eight directions and a middle", () => {
  const held = Array.from({ length: 8 }, (_, eighth) => {
    const turn = (eighth * Math.PI) / 4;
    return heldBy({ x: 40 * Math.cos(turn), y: 40 * Math.sin(turn) });
  });
  const { up, down, left, right } = HELD;
  expect(held).toEqual([right, right | down, down, down | left, left, left | up, up, up | right]);
  expect(heldBy({ x: 4, y: -4 })).toBe(0);
});

test("the left half walks, and while building only its corner does", () => {
  expect(walks({ x: 100, y: 200 }, PHONE, false)).toBe(true);
  expect(walks({ x: 300, y: 700 }, PHONE, false)).toBe(false);
  expect(walks({ x: 100, y: 200 }, PHONE, true)).toBe(false);
  expect(walks({ x: 100, y: 700 }, PHONE, true)).toBe(true);
});

test("a knob stays at its stick", () => {
  expect(knobOf({ x: 10, y: 10 }, { x: 10, y: 500 })).toEqual({ x: 10, y: 10 + STICK_PX });
  expect(knobOf({ x: 10, y: 10 }, { x: 20, y: 15 })).toEqual({ x: 20, y: 15 });
});
