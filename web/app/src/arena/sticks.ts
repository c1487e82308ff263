// The two sticks on glass, as they are seen.

import type { Point, Size } from "../game/canvas";
import type { Colours } from "./colours";
import type { Thumb } from "./controls";
import type { Pen } from "./figures";
import { knobOf, restOf, STICK_PX } from "./thumbs";

export function paintSticks(pen: Pen, colours: Colours, stage: Size, thumbs: Thumb[], building: boolean): void {
  for (const [does, side] of [["walk", "left"], ["aim", "right"]] as const) {
    const thumb = thumbs.find((thumb) => thumb.does === does);
    // Who builds points at tiles with the right thumb.
    if (building && does === "aim") continue;
    const from = thumb?.from ?? restOf(stage, side);
    paintStick(pen, colours, from, thumb ? knobOf(from, thumb.at) : from, thumb ? 0.5 : 0.28);
    if (!thumb) paintSign(pen, colours, from, does);
  }
}

function paintStick(pen: Pen, colours: Colours, from: Point, knob: Point, strength: number): void {
  pen.save();
  pen.globalAlpha = strength;
  pen.strokeStyle = pen.fillStyle = colours.muted;
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(from.x, from.y, STICK_PX, 0, 2 * Math.PI);
  pen.stroke();
  pen.beginPath();
  pen.arc(knob.x, knob.y, STICK_PX * 0.45, 0, 2 * Math.PI);
  pen.fill();
  pen.restore();
}

/** What a stick that rests is for: arrows, or cross hairs. */
function paintSign(pen: Pen, colours: Colours, { x, y }: Point, does: "walk" | "aim"): void {
  pen.save();
  pen.translate(x, y);
  pen.globalAlpha = 0.55;
  pen.fillStyle = pen.strokeStyle = colours.muted;
  pen.lineWidth = 2;
  for (let quarter = 0; quarter < 4; quarter++) {
    pen.rotate(Math.PI / 2);
    pen.beginPath();
    if (does === "walk") {
      pen.moveTo(STICK_PX * 0.84, 0);
      pen.lineTo(STICK_PX * 0.64, -6);
      pen.lineTo(STICK_PX * 0.64, 6);
      pen.fill();
    } else {
      pen.moveTo(STICK_PX * 0.62, 0);
      pen.lineTo(STICK_PX * 0.86, 0);
      pen.stroke();
    }
  }
  pen.restore();
}
