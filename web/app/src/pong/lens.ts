// From court units to the screen and back. On a tall screen a wide court stands upright, own wall below, so that the
// court is large and a thumb reaches the paddle.

import type { Point, Size } from "../game/canvas";
import type { WallName } from "../worker/messages";

/** Quarter turns clockwise, from court to screen. */
export type Turn = 0 | 1 | 3;

export interface Lens {
  turn: Turn;
  /** CSS pixels in a unit. */
  scale: number;
  /** The middle of the court on the stage, in CSS pixels. */
  middle: Point;
  /** The court on the stage. */
  box: { x: number; y: number } & Size;
}

/** The least height for thumbs below the court of a tall screen. */
const THUMB_PX = 108;
const MARGIN_PX = 12;

const COS = { 0: 1, 1: 0, 3: 0 } as const;
const SIN = { 0: 0, 1: 1, 3: -1 } as const;

export function isTall(stage: Size): boolean {
  return stage.h > stage.w * 1.1;
}

export function lensFor(stage: Size, court: Size, own: WallName | null): Lens {
  const tall = isTall(stage);
  const turn: Turn = tall && court.w > court.h ? (own === "right" ? 1 : 3) : 0;
  const shown = turn === 0 ? court : { w: court.h, h: court.w };
  const room = {
    w: Math.max(1, stage.w - 2 * MARGIN_PX),
    h: Math.max(1, stage.h - 2 * MARGIN_PX - (tall ? THUMB_PX : 0)),
  };
  const scale = Math.min(room.w / shown.w, room.h / shown.h);
  const box_size = { w: shown.w * scale, h: shown.h * scale };
  // On a tall screen the court is at the top and the thumbs have what is left.
  const x = (stage.w - box_size.w) / 2;
  const y = tall ? MARGIN_PX : (stage.h - box_size.h) / 2;
  return { turn, scale, middle: { x: x + box_size.w / 2, y: y + box_size.h / 2 }, box: { x, y, ...box_size } };
}

export function toScreen(lens: Lens, { x, y }: Point): Point {
  const turned = rotate({ x, y }, lens.turn);
  return { x: lens.middle.x + turned.x * lens.scale, y: lens.middle.y + turned.y * lens.scale };
}

export function toCourt(lens: Lens, { x, y }: Point): Point {
  const there = { x: (x - lens.middle.x) / lens.scale, y: (y - lens.middle.y) / lens.scale };
  return rotate(there, back(lens.turn));
}

/** A finger as a place in the court. Below the court, what is left of the stage stands for the court's whole height. */
export function pointed(lens: Lens, stage: Size, finger: Point): Point {
  const bottom = lens.box.y + lens.box.h;
  const below = stage.h - bottom;
  if (finger.y <= bottom + MARGIN_PX || below < THUMB_PX / 2) return toCourt(lens, finger);
  const part = (finger.y - bottom) / below;
  return toCourt(lens, { x: finger.x, y: lens.box.y + part * lens.box.h });
}

/** The wall of the court as it lies on the screen. */
export function wallOnScreen(lens: Lens, wall: WallName): WallName {
  const order: WallName[] = ["right", "bottom", "left", "top"];
  return order[(order.indexOf(wall) + lens.turn) % 4] ?? wall;
}

/** Bits of held keys (1 up, 2 down, 4 left, 8 right), from the screen's directions to the court's. */
export function heldInCourt(lens: Lens, held: number): number {
  const dx = Number(Boolean(held & 8)) - Number(Boolean(held & 4));
  const dy = Number(Boolean(held & 2)) - Number(Boolean(held & 1));
  const { x, y } = rotate({ x: dx, y: dy }, back(lens.turn));
  return (y < 0 ? 1 : 0) | (y > 0 ? 2 : 0) | (x < 0 ? 4 : 0) | (x > 0 ? 8 : 0);
}

function rotate({ x, y }: Point, turn: Turn): Point {
  return { x: x * COS[turn] - y * SIN[turn], y: x * SIN[turn] + y * COS[turn] };
}

function back(turn: Turn): Turn {
  return turn === 0 ? 0 : turn === 1 ? 3 : 1;
}
