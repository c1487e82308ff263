// Draws the arena: the ground, and on it everything in sight, from the lowest to the highest.

import type { Point } from "../game/canvas";
import type { Shape } from "../game/motion";
import { KIND } from "../worker/messages";
import { isInSight, toScreen, type Camera } from "./camera";
import { NOBODY, type Look } from "./characters";
import type { Colours } from "./colours";
import {
  line,
  paintAvatar,
  paintFlash,
  paintGhost,
  paintName,
  paintPreview,
  paintShield,
  paintShot,
  paintStructure,
  paintTaking,
  type Pen,
  type Person,
} from "./figures";
import type { Flash } from "./happenings";

export interface Scene {
  camera: Camera;
  shapes: Shape[];
  /** The confirmed state; drawn behind the predicted one. */
  ghost: Shape[] | null;
  flashes: Flash[];
  /** The middle of the tile from which something would be taken away. */
  taking: Point | null;
  own_seat: number | null;
  names: ReadonlyMap<number, string>;
  looks: ReadonlyMap<number, Look>;
  /** How many tiles a side of the map has; 0 if that is not known. */
  size: number;
  /** Without what only moves. */
  still: boolean;
}

/** Every so many tiles the grid has a stronger line. */
const STRONG_EVERY = 8;

const STRUCTURES: ReadonlySet<number> = new Set([KIND.built_wall, KIND.crate, KIND.rock]);
const PREVIEWS: ReadonlySet<number> = new Set([KIND.preview, KIND.bad_preview]);
const MOVES: ReadonlySet<number> = new Set([KIND.avatar, KIND.projectile]);

export function paint(pen: Pen, colours: Colours, scene: Scene): void {
  const { camera, flashes } = scene;
  const seen = scene.shapes.filter((shape) => isInSight(camera, shape, 1.5));
  paintGround(pen, colours, camera, scene.size);
  for (const shape of seen) if (STRUCTURES.has(shape.kind)) paintStructure(pen, colours, camera, shape);
  for (const shape of seen) if (PREVIEWS.has(shape.kind)) paintPreview(pen, colours, camera, shape);
  if (scene.taking) paintTaking(pen, colours, camera, scene.taking);
  for (const shape of scene.ghost ?? []) if (MOVES.has(shape.kind)) paintGhost(pen, colours, camera, shape);
  const people = seen.filter(({ kind }) => kind === KIND.avatar).map((shape) => ({ shape, person: personOf(scene, shape) }));
  // The own one over others.
  people.sort((a, b) => Number(a.person.own) - Number(b.person.own));
  for (const { shape, person } of people) paintAvatar(pen, colours, camera, shape, person);
  for (const shape of seen) if (shape.kind === KIND.shield) paintShield(pen, colours, camera, shape);
  for (const shape of seen) if (shape.kind === KIND.projectile) paintShot(pen, colours, camera, shape, scene.still);
  for (const flash of flashes) paintFlash(pen, colours, camera, flash);
  for (const { shape, person } of people) paintName(pen, colours, camera, shape, person);
}

function personOf({ own_seat, names, looks, flashes }: Scene, shape: Shape): Person {
  const hit = flashes.find(({ what, id }) => what === "hit" && id === shape.id);
  const [name, look] = [names.get(shape.tint) ?? "", looks.get(shape.tint) ?? NOBODY];
  return { own: shape.tint === own_seat, name, look, hit: hit ? 1 - hit.part : 0 };
}

function paintGround(pen: Pen, colours: Colours, camera: Camera, size: number): void {
  const { stage, scale } = camera;
  pen.fillStyle = size > 0 ? colours.beyond : colours.ground;
  pen.fillRect(0, 0, stage.w, stage.h);
  if (size <= 0) return;
  const [from, to] = [toScreen(camera, { x: 0, y: 0 }), toScreen(camera, { x: size, y: size })];
  pen.fillStyle = colours.ground;
  pen.fillRect(from.x, from.y, to.x - from.x, to.y - from.y);
  paintGrid(pen, colours, camera, size);
  pen.strokeStyle = colours.rock_edge;
  pen.lineWidth = Math.max(3, 0.12 * scale);
  pen.lineJoin = "round";
  pen.strokeRect(from.x, from.y, to.x - from.x, to.y - from.y);
}

function paintGrid(pen: Pen, colours: Colours, camera: Camera, size: number): void {
  const [from, to] = [toScreen(camera, { x: 0, y: 0 }), toScreen(camera, { x: size, y: size })];
  const { stage } = camera;
  const [top, bottom] = [Math.max(0, from.y), Math.min(stage.h, to.y)];
  const [left, right] = [Math.max(0, from.x), Math.min(stage.w, to.x)];
  pen.lineWidth = 1;
  for (const strong of [false, true]) {
    pen.strokeStyle = strong ? colours.strong : colours.line;
    for (let tile = 1; tile < size; tile++) {
      if ((tile % STRONG_EVERY === 0) !== strong) continue;
      const { x, y } = toScreen(camera, { x: tile, y: tile });
      if (x > left && x < right) line(pen, [{ x, y: top }, { x, y: bottom }]);
      if (y > top && y < bottom) line(pen, [{ x: left, y }, { x: right, y }]);
    }
  }
}
