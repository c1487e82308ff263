// Draws single figures of the arena from numbers and colours, without game rules.

import type { Point } from "../game/canvas";
import type { Shape } from "../game/motion";
import { KIND, TOOL } from "../worker/messages";
import { toScreen, type Camera } from "./camera";
import type { Look } from "./characters";
import { colourOf, type Colours } from "./colours";
import type { Flash } from "./happenings";

export type Pen = CanvasRenderingContext2D;

/** How many units of an outline are the radius of an avatar, and how wide the lines on it are. */
const OUTLINE = 100;
const EMBLEM_WIDTH = 20;

/** Cracks of a tile, from its middle outwards, each a little more broken than the one before. */
const CRACKS: Point[][] = [
  [{ x: -0.08, y: -0.05 }, { x: 0.12, y: -0.2 }, { x: 0.1, y: -0.32 }, { x: 0.26, y: -0.46 }],
  [{ x: -0.08, y: -0.05 }, { x: -0.24, y: 0.08 }, { x: -0.3, y: 0.24 }, { x: -0.46, y: 0.3 }],
  [{ x: -0.08, y: -0.05 }, { x: 0.08, y: 0.14 }, { x: 0.06, y: 0.3 }, { x: 0.2, y: 0.46 }],
  [{ x: -0.08, y: -0.05 }, { x: -0.26, y: -0.16 }, { x: -0.34, y: -0.4 }],
  [{ x: 0.08, y: 0.14 }, { x: 0.28, y: 0.12 }, { x: 0.46, y: 0.22 }],
];

/** A tile with something on it. */
export function paintStructure(pen: Pen, colours: Colours, camera: Camera, shape: Shape): void {
  const { scale } = camera;
  const { x, y } = toScreen(camera, shape);
  if (shape.kind === KIND.rock) return paintRock(pen, colours, shape, { x, y }, scale);
  const crate = shape.kind === KIND.crate;
  const half = (crate ? 0.42 : 0.47) * scale;
  const edge = crate ? colours.crate_edge : colours.wall_edge;
  pen.fillStyle = crate ? colours.crate : colours.wall;
  pen.strokeStyle = edge;
  pen.lineWidth = Math.max(1.2, 0.06 * scale);
  pen.beginPath();
  pen.roundRect(x - half, y - half, 2 * half, 2 * half, (crate ? 0.05 : 0.12) * scale);
  pen.fill();
  if (shape.tint >= 0) paintOwner(pen, colours, shape, { x, y }, half);
  if (crate) {
    line(pen, [{ x: x - half, y: y - half }, { x: x + half, y: y + half }]);
    line(pen, [{ x: x + half, y: y - half }, { x: x - half, y: y + half }]);
  }
  pen.beginPath();
  pen.roundRect(x - half, y - half, 2 * half, 2 * half, (crate ? 0.05 : 0.12) * scale);
  pen.stroke();
  paintCracks(pen, colours, shape.level, { x, y }, scale);
}

/** In whose colour it is: a stud in its middle. */
function paintOwner(pen: Pen, colours: Colours, { tint }: Shape, { x, y }: Point, half: number): void {
  pen.save();
  pen.fillStyle = colourOf(colours, tint);
  pen.globalAlpha = 0.4;
  pen.beginPath();
  pen.roundRect(x - half * 0.55, y - half * 0.55, half * 1.1, half * 1.1, half * 0.2);
  pen.fill();
  pen.restore();
}

function paintCracks(pen: Pen, colours: Colours, level: number, { x, y }: Point, scale: number): void {
  const shown = level >= 0.99 ? 0 : Math.min(CRACKS.length, Math.ceil((1 - level) * CRACKS.length));
  pen.strokeStyle = colours.text;
  pen.globalAlpha = 0.6;
  pen.lineWidth = Math.max(1, 0.035 * scale);
  for (const crack of CRACKS.slice(0, shown)) {
    line(pen, crack.map((point) => ({ x: x + point.x * scale, y: y + point.y * scale })));
  }
  pen.globalAlpha = 1;
}

/** No two rocks look the same, and each always does. */
function paintRock(pen: Pen, colours: Colours, shape: Shape, { x, y }: Point, scale: number): void {
  const seed = Math.floor(shape.x) * 37 + Math.floor(shape.y) * 101;
  pen.fillStyle = colours.rock;
  pen.strokeStyle = colours.rock_edge;
  pen.lineWidth = Math.max(1, 0.05 * scale);
  pen.lineJoin = "round";
  pen.beginPath();
  for (let corner = 0; corner < 8; corner++) {
    const turn = ((corner + 0.5) / 8) * 2 * Math.PI;
    const far = (0.42 + (((seed * (corner + 3)) % 13) / 13) * 0.13) * scale;
    pen.lineTo(x + Math.cos(turn) * far, y + Math.sin(turn) * far);
  }
  pen.closePath();
  pen.fill();
  pen.stroke();
}

/** The preview of a structure. */
export function paintPreview(pen: Pen, colours: Colours, camera: Camera, shape: Shape): void {
  const ok = shape.kind === KIND.preview;
  const colour = ok ? colours.good : colours.bad;
  paintPlan(pen, colour, camera, shape, shape.level >= 0.5 ? TOOL.crate : TOOL.wall);
}

/** The marker on a structure that would be removed. */
export function paintTaking(pen: Pen, colours: Colours, camera: Camera, tile: Point): void {
  paintPlan(pen, colours.bad, camera, tile, TOOL.remove);
}

function paintPlan(pen: Pen, colour: string, camera: Camera, place: Point, tool: number): void {
  const { scale } = camera;
  const { x, y } = toScreen(camera, place);
  const half = 0.46 * scale;
  pen.save();
  pen.fillStyle = pen.strokeStyle = colour;
  pen.lineWidth = Math.max(1.5, 0.05 * scale);
  pen.beginPath();
  pen.roundRect(x - half, y - half, 2 * half, 2 * half, 0.1 * scale);
  pen.globalAlpha = 0.28;
  pen.fill();
  pen.globalAlpha = 0.9;
  pen.setLineDash([0.16 * scale, 0.12 * scale]);
  pen.stroke();
  pen.setLineDash([]);
  if (tool !== TOOL.wall) {
    const reach = (tool === TOOL.crate ? 0.8 : 0.5) * half;
    line(pen, [{ x: x - reach, y: y - reach }, { x: x + reach, y: y + reach }]);
    line(pen, [{ x: x + reach, y: y - reach }, { x: x - reach, y: y + reach }]);
  }
  pen.restore();
}

export interface Person {
  own: boolean;
  name: string;
  look: Look;
  /** From 1, just hit, to 0. */
  hit: number;
}

export function paintAvatar(pen: Pen, colours: Colours, camera: Camera, shape: Shape, person: Person): void {
  const { scale } = camera;
  const { x, y } = toScreen(camera, shape);
  const radius = (shape.w / 2) * scale;
  const colour = colourOf(colours, shape.tint);
  if (person.own) {
    pen.fillStyle = colour;
    pen.globalAlpha = 0.16;
    disc(pen, { x, y }, radius * 1.9);
    pen.globalAlpha = 1;
  }
  paintHealth(pen, colours, shape.level, { x, y }, radius, scale);
  paintBarrel(pen, colours, { x, y }, radius, shape.angle);
  pen.fillStyle = colour;
  pen.strokeStyle = person.own ? colours.text : colours.ground;
  pen.lineWidth = person.own ? Math.max(2, 0.075 * scale) : Math.max(1.2, 0.05 * scale);
  paintBody(pen, colours, person, { x, y }, radius / OUTLINE);
}

/** An outline and an emblem, with a flash over both after a hit. */
function paintBody(pen: Pen, colours: Colours, { look, hit }: Person, { x, y }: Point, scale: number): void {
  const body = pathOf(look.body);
  pen.save();
  pen.translate(x, y);
  pen.scale(scale, scale);
  pen.lineWidth /= scale;
  pen.fill(body);
  pen.stroke(body);
  pen.strokeStyle = colours.ground;
  pen.lineWidth = EMBLEM_WIDTH;
  pen.lineCap = pen.lineJoin = "round";
  pen.stroke(pathOf(look.emblem));
  if (hit > 0) {
    pen.fillStyle = "#fff";
    pen.globalAlpha = 0.85 * hit;
    pen.fill(body);
  }
  pen.restore();
}

/** The paths of outlines, each made once. */
const paths = new Map<string, Path2D>();

function pathOf(outline: string): Path2D {
  const path = paths.get(outline) ?? new Path2D(outline);
  paths.set(outline, path);
  return path;
}

function paintBarrel(pen: Pen, colours: Colours, { x, y }: Point, radius: number, angle: number): void {
  pen.save();
  pen.translate(x, y);
  pen.rotate(angle);
  pen.fillStyle = colours.text;
  pen.strokeStyle = colours.ground;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.roundRect(radius * 0.4, -radius * 0.25, radius * 1.32, radius * 0.5, radius * 0.14);
  pen.fill();
  pen.stroke();
  pen.restore();
}

/** An arc with the health of a wounded avatar. */
function paintHealth(pen: Pen, colours: Colours, level: number, at: Point, radius: number, scale: number): void {
  // Of those far away it is not known.
  if (!(level > 0) || level >= 1) return;
  const reach = radius + 0.13 * scale;
  pen.lineWidth = Math.max(2.5, 0.085 * scale);
  pen.lineCap = "round";
  pen.strokeStyle = colours.strong;
  arc(pen, at, reach, 1);
  pen.strokeStyle = level > 0.6 ? colours.good : level > 0.3 ? colours.warn : colours.bad;
  arc(pen, at, reach, level);
  pen.lineCap = "butt";
}

/** A ring around an avatar that nothing hurts. */
export function paintShield(pen: Pen, colours: Colours, camera: Camera, shape: Shape): void {
  const at = toScreen(camera, shape);
  const radius = (shape.w / 2) * camera.scale;
  pen.save();
  pen.fillStyle = pen.strokeStyle = colours.accent;
  pen.globalAlpha = 0.12;
  disc(pen, at, radius);
  pen.globalAlpha = 0.9;
  pen.lineWidth = Math.max(2, 0.07 * camera.scale);
  arc(pen, at, radius, 1);
  pen.restore();
}

export function paintName(pen: Pen, colours: Colours, camera: Camera, shape: Shape, person: Person): void {
  if (!person.name) return;
  const { x, y } = toScreen(camera, shape);
  const size = Math.min(14, Math.max(11, camera.scale * 0.29));
  pen.font = `${person.own ? 700 : 600} ${size}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  pen.lineJoin = "round";
  pen.lineWidth = 3;
  pen.strokeStyle = colours.ground;
  pen.fillStyle = person.own ? colours.text : colours.muted;
  const above = y - (shape.w / 2 + 0.3) * camera.scale;
  pen.strokeText(person.name, x, above);
  pen.fillText(person.name, x, above);
}

/** A shot, with a tail where it came from. */
export function paintShot(pen: Pen, colours: Colours, camera: Camera, shape: Shape, still: boolean): void {
  const head = toScreen(camera, shape);
  const long = (still ? 0.25 : 0.95) * camera.scale;
  const tail = { x: head.x - Math.cos(shape.angle) * long, y: head.y - Math.sin(shape.angle) * long };
  const colour = colourOf(colours, shape.tint);
  const fade = pen.createLinearGradient(head.x, head.y, tail.x, tail.y);
  fade.addColorStop(0, colour);
  fade.addColorStop(1, "transparent");
  pen.strokeStyle = fade;
  pen.lineCap = "round";
  pen.lineWidth = Math.max(2.5, shape.w * camera.scale * 0.75);
  line(pen, [head, tail]);
  pen.lineCap = "butt";
  pen.fillStyle = colours.text;
  disc(pen, head, Math.max(2.2, (shape.w / 2) * camera.scale));
}

/** The confirmed state: dashed, behind the predicted one. */
export function paintGhost(pen: Pen, colours: Colours, camera: Camera, shape: Shape): void {
  const at = toScreen(camera, shape);
  const colour = colourOf(colours, shape.tint);
  pen.fillStyle = pen.strokeStyle = colour;
  pen.lineWidth = 1.75;
  pen.globalAlpha = 0.22;
  disc(pen, at, (shape.w / 2) * camera.scale);
  pen.globalAlpha = 0.95;
  pen.setLineDash([4, 3]);
  pen.stroke();
  if (shape.kind === KIND.avatar) {
    const [from, to] = [shape.w * 0.5, shape.w * 0.85].map((far) => ({
      x: at.x + Math.cos(shape.angle) * far * camera.scale,
      y: at.y + Math.sin(shape.angle) * far * camera.scale,
    }));
    if (from && to) line(pen, [from, to]);
  }
  pen.setLineDash([]);
  pen.globalAlpha = 1;
}

export function paintFlash(pen: Pen, colours: Colours, camera: Camera, flash: Flash): void {
  const at = toScreen(camera, flash);
  const { scale } = camera;
  const { part, what } = flash;
  const grown = 1 - (1 - part) ** 3;
  const colour = colourOf(colours, flash.tint);
  pen.globalAlpha = 1 - part;
  switch (what) {
    case "fired":
    case "ended":
      pen.strokeStyle = colour;
      pen.lineWidth = 2;
      rays(pen, at, 0.08 * scale, (0.12 + 0.3 * grown) * scale, 6, flash.angle);
      break;
    case "fell":
      pen.strokeStyle = pen.fillStyle = colour;
      pen.lineWidth = Math.max(1.5, 0.1 * scale * (1 - part));
      arc(pen, at, (0.4 + 1.3 * grown) * scale, 1);
      sparks(pen, at, (0.3 + 1.5 * grown) * scale, 0.11 * scale * (1 - part), 9);
      break;
    case "broke":
      pen.fillStyle = colours.wall_edge;
      sparks(pen, at, (0.25 + 0.75 * grown) * scale, 0.1 * scale * (1 - 0.5 * part), 8);
      break;
    case "chipped":
    case "built": {
      const half = (what === "built" ? 0.5 + 0.2 * grown : 0.46) * scale;
      pen.globalAlpha *= what === "built" ? 1 : 0.6;
      pen.fillStyle = "#fff";
      pen.strokeStyle = colour;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.roundRect(at.x - half, at.y - half, 2 * half, 2 * half, 0.12 * scale);
      if (what === "built") pen.stroke();
      else pen.fill();
      break;
    }
    case "hit":
      // The avatar itself shows it.
      break;
  }
  pen.globalAlpha = 1;
}

function rays(pen: Pen, { x, y }: Point, from: number, to: number, count: number, turn: number): void {
  for (let ray = 0; ray < count; ray++) {
    const angle = turn + (ray / count) * 2 * Math.PI;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    line(pen, [{ x: x + cos * from, y: y + sin * from }, { x: x + cos * to, y: y + sin * to }]);
  }
}

function sparks(pen: Pen, { x, y }: Point, far: number, size: number, count: number): void {
  for (let spark = 0; spark < count; spark++) {
    const angle = (spark / count) * 2 * Math.PI + (spark % 3) * 0.35;
    const reach = far * (0.7 + 0.3 * ((spark * 7) % 5) / 4);
    pen.fillRect(x + Math.cos(angle) * reach - size / 2, y + Math.sin(angle) * reach - size / 2, size, size);
  }
}

function disc(pen: Pen, { x, y }: Point, radius: number): void {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}

/** From the top, clockwise, so much of a circle. */
function arc(pen: Pen, { x, y }: Point, radius: number, part: number): void {
  pen.beginPath();
  pen.arc(x, y, radius, -Math.PI / 2, -Math.PI / 2 + part * 2 * Math.PI);
  pen.stroke();
}

export function line(pen: Pen, points: Point[]): void {
  pen.beginPath();
  for (const { x, y } of points) pen.lineTo(x, y);
  pen.stroke();
}
