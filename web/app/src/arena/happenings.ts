// Events between two frames, found by comparing their shapes: hits, deaths, ends of shots, broken walls.

import type { Shape } from "../game/motion";
import { KIND } from "../worker/messages";

export type What = "fired" | "hit" | "chipped" | "fell" | "broke" | "built" | "ended";

export interface Happening {
  what: What;
  x: number;
  y: number;
  tint: number;
  angle: number;
  /** The shape it happened to. */
  id: number;
}

const STRUCTURES: ReadonlySet<number> = new Set([KIND.built_wall, KIND.crate]);

/** Beyond this distance from the camera, in tiles, shapes appear and vanish because of what the server sends, not because of events. */
const KNOWN = 22;

export class Happenings {
  private before: Map<number, Shape> | null = null;

  /** Forgets the last frame: what follows has nothing to do with it. */
  forget(): void {
    this.before = null;
  }

  /** What has happened since the last frame, within sight of a place. */
  since(shapes: Shape[], around: { x: number; y: number }): Happening[] {
    const { before } = this;
    const now = new Map(shapes.map((shape) => [shape.id, shape]));
    this.before = now;
    if (!before) return [];
    const happened: Happening[] = [];
    const note = (what: What | null, shape: Shape) => {
      if (!what || Math.hypot(shape.x - around.x, shape.y - around.y) > KNOWN) return;
      const { x, y, tint, angle, id } = shape;
      happened.push({ what, x, y, tint, angle, id });
    };
    for (const shape of shapes) note(change(before.get(shape.id), shape), shape);
    for (const shape of before.values()) if (!now.has(shape.id)) note(end(shape), shape);
    return happened;
  }
}

function change(before: Shape | undefined, now: Shape): What | null {
  if (!before) return now.kind === KIND.projectile ? "fired" : STRUCTURES.has(now.kind) ? "built" : null;
  if (!(now.level < before.level)) return null;
  return now.kind === KIND.avatar ? "hit" : STRUCTURES.has(now.kind) ? "chipped" : null;
}

function end(shape: Shape): What | null {
  if (shape.kind === KIND.projectile) return "ended";
  if (shape.kind === KIND.avatar) return "fell";
  return STRUCTURES.has(shape.kind) ? "broke" : null;
}

/** The bit of a frame's events that says that the own gun went off. */
export const OWN_SHOT = 1;

/** Where a gun goes off: at the end of its barrel. */
export function muzzle({ x, y, w, angle, tint, id }: Shape): Happening {
  const far = w * 0.95;
  return { what: "fired", x: x + Math.cos(angle) * far, y: y + Math.sin(angle) * far, tint, angle, id };
}

export interface Flash extends Happening {
  since_ms: number;
  /** How much of it is over. */
  part: number;
}

const LASTS_MS: Record<What, number> = { fired: 90, hit: 220, chipped: 160, fell: 650, broke: 420, built: 260, ended: 200 };

/** What is still to be seen of what happened. */
export class Flashes {
  private flashes: Flash[] = [];

  add(happened: Happening[], now_ms: number): void {
    for (const one of happened) this.flashes.push({ ...one, since_ms: now_ms, part: 0 });
  }

  at(now_ms: number): Flash[] {
    for (const flash of this.flashes) flash.part = Math.max(0, (now_ms - flash.since_ms) / LASTS_MS[flash.what]);
    this.flashes = this.flashes.filter(({ part }) => part < 1);
    return this.flashes;
  }
}
