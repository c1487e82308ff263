// The whole map, small: what stands where, and whom one knows of.

import type { Size } from "../game/canvas";
import type { Shape } from "../game/motion";
import { KIND } from "../worker/messages";
import type { Camera } from "./camera";
import { colourOf, type Colours } from "./colours";
import type { Pen } from "./figures";

const MARGIN_PX = 12;

export interface Box {
  x: number;
  y: number;
  side: number;
}

/** Where it is: at the bottom of a wide stage, at the top of a narrow one, whose bottom is for thumbs. */
export function minimapBox(stage: Size, narrow: boolean): Box {
  const side = narrow ? 92 : Math.min(164, stage.h * 0.26);
  return { x: stage.w - side - MARGIN_PX, y: narrow ? MARGIN_PX : stage.h - side - MARGIN_PX, side };
}

export function paintMinimap(
  pen: Pen,
  colours: Colours,
  { x, y, side }: Box,
  { shapes, camera, size, own_seat }: { shapes: Shape[]; camera: Camera; size: number; own_seat: number | null },
): void {
  if (size <= 0) return;
  const part = side / size;
  pen.save();
  pen.beginPath();
  pen.roundRect(x, y, side, side, 8);
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
    pen.fillRect(x + (shape.x - 0.5) * part, y + (shape.y - 0.5) * part, Math.max(1.5, part), Math.max(1.5, part));
  }
  for (const shape of shapes) if (shape.kind === KIND.avatar) dot(pen, colours, shape, x, y, part, shape.tint === own_seat);
  const [w, h] = [camera.stage.w / camera.scale, camera.stage.h / camera.scale];
  pen.strokeStyle = colours.muted;
  pen.globalAlpha = 0.55;
  pen.strokeRect(x + (camera.at.x - w / 2) * part, y + (camera.at.y - h / 2) * part, w * part, h * part);
  pen.restore();
}

function dot(pen: Pen, colours: Colours, shape: Shape, x: number, y: number, part: number, own: boolean): void {
  pen.fillStyle = colourOf(colours, shape.tint);
  pen.beginPath();
  pen.arc(x + shape.x * part, y + shape.y * part, own ? 4 : 2.75, 0, 2 * Math.PI);
  pen.fill();
  if (!own) return;
  pen.strokeStyle = colours.text;
  pen.lineWidth = 1.5;
  pen.stroke();
}
