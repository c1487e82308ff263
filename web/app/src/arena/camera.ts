// The camera: converts tiles to screen and back, follows the own avatar, and stops at the edge of the map.

import type { Point, Size } from "../game/canvas";

export interface Camera {
  /** The place in the middle of the stage, in tiles. */
  at: Point;
  /** CSS pixels in a tile. */
  scale: number;
  stage: Size;
}

/** On every screen about as much of the map is seen. */
const TILES_ACROSS = 20;
const LEAST_PX = 28;
const MOST_PX = 60;

/** An avatar at the edge of the map is this part of the stage away from its edge, where controls and figures are. */
const MARGIN = 0.28;
/** And not more than this. */
const MOST_MARGIN_PX = 220;

/** `size`: how many tiles a side of the map has; 0 if that is not known. */
export function cameraOver(wanted: Point, size: number, stage: Size): Camera {
  const across = Math.sqrt(stage.w * stage.h) / TILES_ACROSS;
  const scale = Math.min(MOST_PX, Math.max(LEAST_PX, across));
  const kept = (at: number, length: number) => keptOn(at, size, length / scale, Math.min(MARGIN, MOST_MARGIN_PX / length));
  return { at: { x: kept(wanted.x, stage.w), y: kept(wanted.y, stage.h) }, scale, stage };
}

/** The middle of what is seen, so many tiles, such that no more than a part of it is beyond the map. */
export function keptOn(at: number, size: number, seen: number, beyond: number): number {
  if (size <= 0) return at;
  const low = seen * (0.5 - beyond);
  return low > size / 2 ? size / 2 : Math.min(size - low, Math.max(low, at));
}

export function toScreen({ at, scale, stage }: Camera, { x, y }: Point): Point {
  return { x: stage.w / 2 + (x - at.x) * scale, y: stage.h / 2 + (y - at.y) * scale };
}

export function toMap({ at, scale, stage }: Camera, { x, y }: Point): Point {
  return { x: at.x + (x - stage.w / 2) / scale, y: at.y + (y - stage.h / 2) / scale };
}

/** Whether something of this radius, in tiles, is on the stage. */
export function isInSight(camera: Camera, place: Point, radius: number): boolean {
  const { x, y } = toScreen(camera, place);
  const reach = radius * camera.scale;
  return x > -reach && y > -reach && x < camera.stage.w + reach && y < camera.stage.h + reach;
}
