// Whether something can be built where somebody points, as far as this screen knows: the answer of the game itself comes a
// moment later, and is what others see.

import type { Point } from "../game/canvas";
import type { Shape } from "../game/motion";
import { KIND, TOOL, type Tool } from "../worker/messages";

/** From the middle of an avatar to that of a tile, in tiles. */
const REACH = 4;

/** What is pointed at while building. */
export interface Cursor {
  /** The middle of the tile. */
  x: number;
  y: number;
  tool: Tool;
  ok: boolean;
}

const SOLID: ReadonlySet<number> = new Set([KIND.built_wall, KIND.crate, KIND.rock]);

export function cursorAt(pointed: Point, tool: Tool, own: Shape, shapes: Shape[], left: number): Cursor {
  const [x, y] = [Math.floor(pointed.x) + 0.5, Math.floor(pointed.y) + 0.5];
  const near = Math.hypot(x - own.x, y - own.y) <= REACH;
  const on_tile = shapes.find((shape) => SOLID.has(shape.kind) && Math.abs(shape.x - x) < 0.5 && Math.abs(shape.y - y) < 0.5);
  if (tool === TOOL.remove) {
    const removable = on_tile !== undefined && on_tile.kind !== KIND.rock && on_tile.tint === own.tint;
    return { x, y, tool, ok: near && removable };
  }
  const ground = shapes.find(({ kind }) => kind === KIND.ground);
  const inside = !ground || (x > 0 && y > 0 && x < ground.w && y < ground.h);
  const somebody = shapes.some((shape) => shape.kind === KIND.avatar && overlaps(shape, x, y));
  return { x, y, tool, ok: near && inside && left > 0 && !on_tile && !somebody };
}

/** Whether an avatar is on the tile with this middle. */
function overlaps({ x, y, w }: Shape, tile_x: number, tile_y: number): boolean {
  const beyond = (at: number, middle: number) => Math.max(0, Math.abs(at - middle) - 0.5);
  return Math.hypot(beyond(x, tile_x), beyond(y, tile_y)) < w / 2;
}
