// Touch controls: the left thumb walks, the right one aims and fires, depending on where it came down.

import type { Point, Size } from "../game/canvas";
import { HELD } from "../worker/messages";

/** A thumb that has moved less than this has not said anything yet. */
export const DEAD_PX = 12;

/** As far as a stick's knob goes. */
export const STICK_PX = 52;

/** A direction counts from here on: the tangent of a sixteenth of a turn, so that eight directions are equally wide. */
const SLANT = Math.tan(Math.PI / 8);

/** The directions that a stick holds, as bits. */
export function heldBy({ x, y }: Point): number {
  if (Math.hypot(x, y) < DEAD_PX) return 0;
  const upright = Math.abs(y) > SLANT * Math.abs(x);
  const sideways = Math.abs(x) > SLANT * Math.abs(y);
  return (upright ? (y < 0 ? HELD.up : HELD.down) : 0) | (sideways ? (x < 0 ? HELD.left : HELD.right) : 0);
}

/** Whether a thumb that comes down here walks. In build mode, touches outside the corner point at tiles. */
export function walks(at: Point, stage: Size, building: boolean): boolean {
  if (!building) return at.x < stage.w / 2;
  return at.x < stage.w * 0.45 && at.y > stage.h * 0.62;
}

/** The knob of a stick, not further from its middle than it goes. */
export function knobOf(from: Point, at: Point): Point {
  const [x, y] = [at.x - from.x, at.y - from.y];
  const far = Math.hypot(x, y);
  const part = far > STICK_PX ? STICK_PX / far : 1;
  return { x: from.x + x * part, y: from.y + y * part };
}
