// Predicted shots. In a room the server sends an own shot only after a round trip. Until then one is drawn that flies as it
// will, from the moment the gun goes off. It has no effect: the server decides whom it hits.

import type { Shape } from "../game/motion";
import { KIND } from "../worker/messages";

const TILES_PER_MS = 0.014;
const LASTS_MS = 1_200;

/** So far apart are the places at which is asked whether something is in the way, in tiles. */
const STEP = 0.2;

const SOLID: ReadonlySet<number> = new Set([KIND.built_wall, KIND.crate, KIND.rock]);

interface Flying {
  shape: Shape;
  since_ms: number;
  flown: number;
}

export class OwnShots {
  private flying: Flying[] = [];
  private fired = 0;

  /** The own gun goes off. */
  fire({ x, y, angle, tint }: Shape, now_ms: number): void {
    const shape = { id: -1 - this.fired++, kind: KIND.projectile, x, y, w: 0.2, h: 0.2, epoch: 0, tint, angle, level: 1 };
    this.flying.push({ shape, since_ms: now_ms, flown: 0 });
  }

  /** The shapes to draw: the server's, with own shots replaced by the predicted ones. */
  among(shapes: Shape[], own_seat: number | null, now_ms: number): Shape[] {
    this.flying = this.flying.filter(({ since_ms }) => now_ms - since_ms < LASTS_MS);
    const solid = new Set(shapes.filter(({ kind }) => SOLID.has(kind)).map(tileOf));
    const others = shapes.filter(({ kind, tint }) => kind === KIND.avatar && tint !== own_seat);
    this.flying = this.flying.filter((shot) => fly(shot, (now_ms - shot.since_ms) * TILES_PER_MS, solid, others));
    const told = shapes.filter(({ kind, tint }) => kind !== KIND.projectile || tint !== own_seat);
    return [...told, ...this.flying.map(({ shape }) => shape)];
  }
}

/** On to so many tiles from where it began; false if something is in the way. */
function fly(shot: Flying, to: number, solid: ReadonlySet<string>, others: Shape[]): boolean {
  const { shape } = shot;
  while (shot.flown < to) {
    const step = Math.min(STEP, to - shot.flown);
    shot.flown += step;
    shape.x += Math.cos(shape.angle) * step;
    shape.y += Math.sin(shape.angle) * step;
    if (solid.has(tileOf(shape))) return false;
    if (others.some(({ x, y, w }) => Math.hypot(x - shape.x, y - shape.y) < w / 2)) return false;
  }
  return true;
}

function tileOf({ x, y }: { x: number; y: number }): string {
  return `${Math.floor(x)} ${Math.floor(y)}`;
}
