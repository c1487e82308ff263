// The minimap: structures, and the known players.

import { emptied } from "../game/canvas";
import type { Shape } from "../game/motion";
import { KIND } from "../worker/messages";
import type { Camera } from "./camera";
import { colourOf, type Colours } from "./colours";
import type { Pen } from "./figures";

/** `side`: of the canvas that it has for itself, in CSS pixels. */
export function paintMinimap(
  canvas: HTMLCanvasElement,
  colours: Colours,
  side: number,
  { shapes, camera, size, own_seat }: { shapes: Shape[]; camera: Camera; size: number; own_seat: number | null },
): void {
  const pen = emptied(canvas, { w: side, h: side });
  if (!pen || size <= 0) return;
  const part = side / size;
  pen.save();
  pen.beginPath();
  pen.roundRect(0.5, 0.5, side - 1, side - 1, 8);
  pen.globalAlpha = 0.95;
  pen.fillStyle = colours.ground;
  pen.fill();
  pen.globalAlpha = 1;
  pen.strokeStyle = colours.edge;
  pen.lineWidth = 1;
  pen.stroke();
  pen.clip();
  for (const shape of shapes) {
    if (shape.kind !== KIND.rock && shape.kind !== KIND.built_wall && shape.kind !== KIND.crate) continue;
    pen.fillStyle = shape.kind === KIND.rock ? colours.rock : shape.kind === KIND.crate ? colours.crate_edge : colours.wall_edge;
    pen.fillRect((shape.x - 0.5) * part, (shape.y - 0.5) * part, Math.max(1.5, part), Math.max(1.5, part));
  }
  for (const shape of shapes) if (shape.kind === KIND.avatar) dot(pen, colours, shape, part, shape.tint === own_seat);
  const [w, h] = [camera.stage.w / camera.scale, camera.stage.h / camera.scale];
  pen.strokeStyle = colours.muted;
  pen.globalAlpha = 0.55;
  pen.strokeRect((camera.at.x - w / 2) * part, (camera.at.y - h / 2) * part, w * part, h * part);
  pen.restore();
}

function dot(pen: Pen, colours: Colours, shape: Shape, part: number, own: boolean): void {
  pen.fillStyle = colourOf(colours, shape.tint);
  pen.beginPath();
  pen.arc(shape.x * part, shape.y * part, own ? 4 : 2.75, 0, 2 * Math.PI);
  pen.fill();
  if (!own) return;
  pen.strokeStyle = colours.text;
  pen.lineWidth = 1.5;
  pen.stroke();
}
