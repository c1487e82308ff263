// The two sticks on glass while thumbs are on them. Where they wait for thumbs is drawn by Stick.svelte.

import type { Point } from "../game/canvas";
import type { Colours } from "./colours";
import type { Thumb } from "./controls";
import type { Pen } from "./figures";
import { knobOf, STICK_PX } from "./thumbs";

export function paintSticks(pen: Pen, colours: Colours, thumbs: Thumb[]): void {
  for (const { does, from, at } of thumbs) if (does !== "point") paintStick(pen, colours, from, knobOf(from, at));
}

function paintStick(pen: Pen, colours: Colours, from: Point, knob: Point): void {
  pen.save();
  pen.globalAlpha = 0.5;
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
