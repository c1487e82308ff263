// A canvas with as many pixels as the display has, and the tail of a ball on it.

import { KIND } from "../worker/messages";
import type { Point, Size } from "./lens";
import type { Motion, Picture } from "./motion";

/** How many ticks the tail is long. */
const TRAIL = 12;

/** Empties a canvas that is this large in CSS pixels; what is drawn then is in those. */
export function emptied(canvas: HTMLCanvasElement, size: Size): CanvasRenderingContext2D | null {
  const density = devicePixelRatio || 1;
  const [wide, high] = [Math.round(size.w * density), Math.round(size.h * density)];
  // Setting a size clears the canvas, so it is done only together with drawing.
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  const to = canvas.getContext("2d");
  to?.setTransform(density, 0, 0, density, 0, 0);
  to?.clearRect(0, 0, size.w, size.h);
  return to;
}

/** Where the ball of a picture was in the ticks before. */
export function tailOf(motion: Motion, picture: Picture | null): Point[] {
  const ball = picture?.shapes.find(({ kind }) => kind === KIND.ball);
  return ball && picture ? motion.trail(ball.id, picture.at, TRAIL) : [];
}
