import { expect, test } from "vitest";
import type { Point } from "../game/canvas";
import type { Shape } from "../game/motion";
import { HELD, KIND } from "../worker/messages";
import { Lookout } from "./lookout";

const MIDDLE = { x: 16, y: 16 };
const avatar = (tint: number, x: number, y: number) => ({ kind: KIND.avatar, tint, x, y }) as Shape;
const SHAPES = [avatar(0, 4, 4), avatar(3, 20, 9)];
const inside = ({ x, y }: Point) => ({ x: Math.min(24, Math.max(8, x)), y: Math.min(24, Math.max(8, y)) });

/** Looks for so many frames of a tenth of a second, and says where. */
function looks(lookout: Lookout, frames: number, shapes = SHAPES, still = false): Point {
  let at = MIDDLE;
  for (let frame = 0; frame <= frames; frame++) at = lookout.look(clock + frame * 100, shapes, MIDDLE, inside, still);
  clock += (frames + 1) * 100;
  return at;
}
let clock = 1_000;

test("the view begins in the middle and stays on the map", () => {
  const lookout = new Lookout();
  lookout.drag({ x: 5, y: 5 });
  expect(looks(lookout, 1)).toEqual(MIDDLE);
  lookout.hold(HELD.right);
  expect(looks(lookout, 2).x).toBeCloseTo(16 + 0.3 * 16);
  looks(lookout, 50);
  lookout.hold(0);
  expect(looks(lookout, 1)).toEqual({ x: 24, y: 16 });
  // Back from the edge at once: nothing was added up beyond it.
  lookout.drag({ x: 2, y: 3 });
  expect(looks(lookout, 1)).toEqual({ x: 22, y: 13 });
});

test("the view follows a player until it is moved", () => {
  const lookout = new Lookout();
  lookout.follow(3);
  const near = looks(lookout, 20);
  expect(near.x).toBeCloseTo(20);
  expect(near.y).toBeCloseTo(9);
  // Between death and respawn there is no avatar: the view waits.
  expect(looks(lookout, 1, [])).toEqual(near);
  expect(looks(lookout, 1, [avatar(3, 10, 10)], true)).toMatchObject({ x: 10, y: 10 });
  lookout.drag({ x: 1, y: 0 });
  expect(lookout.follows).toBeNull();
  lookout.follow(0);
  lookout.hold(HELD.up);
  expect(lookout.follows).toBeNull();
});

test("players are followed in turn, or by pointing at them", () => {
  const lookout = new Lookout();
  const turn = (step: 1 | -1) => (lookout.cycle(step, [0, 3, 5]), lookout.follows);
  expect([turn(1), turn(1), turn(1), turn(1), turn(-1)]).toEqual([0, 3, 5, 0, 5]);
  lookout.follow(null);
  expect(turn(-1)).toBe(5);
  lookout.cycle(1, []);
  expect(lookout.follows).toBeNull();
  lookout.pick({ x: 19.5, y: 9.2 }, 1, SHAPES);
  expect(lookout.follows).toBe(3);
  lookout.pick({ x: 12, y: 12 }, 1, SHAPES);
  expect(lookout.follows).toBe(3);
});
