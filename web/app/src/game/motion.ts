// Interpolation: the place of every shape between two ticks, at the time of a display frame.
//
// Ticks are numbered at an even rate; messages arrive unevenly. So the clock below follows the numbers, corrected
// slowly by when the worker saw each tick, and the picture is shown one tick behind the newest.
//
// Frames of a room are of the very moment at which they were made, whatever tick that is in: they are numbered by it.

import { SHAPE_FLOATS, type TickMessage } from "../worker/messages";

/** Enough for the picture and for the trail behind the ball. */
const KEPT = 24;

/** How much of a difference the clock makes up for with each tick. */
const GAIN = 0.12;

/** A larger difference is no jitter: ticks were skipped, or the page slept. */
const JUMP_MS = 200;

/** The picture is this many ticks behind the newest: within it, jitter is not seen. */
const BEHIND = 1;

/** The same for frames that are made by a timer. */
const FRAMES_BEHIND = 1.4;
const FRAME_MS = 1000 / 60;

export interface Shape {
  id: number;
  kind: number;
  x: number;
  y: number;
  w: number;
  h: number;
  epoch: number;
  tint: number;
  /** In radians. */
  angle: number;
  /** What is left of it, from 0 to 1. */
  level: number;
}

export function shapesOf(frame: Float32Array): Shape[] {
  const shapes: Shape[] = [];
  for (let at = 0; at + SHAPE_FLOATS <= frame.length; at += SHAPE_FLOATS) {
    const numbers = frame.subarray(at, at + SHAPE_FLOATS);
    const [id = 0, kind = 0, x = 0, y = 0, w = 0, h = 0, epoch = 0, tint = -1, angle = 0, level = 1] = numbers;
    shapes.push({ id, kind, x, y, w, h, epoch, tint, angle, level });
  }
  return shapes;
}

interface Kept {
  tick: number;
  shapes: Shape[];
  ghost: Shape[] | null;
}

export interface Picture {
  /** The moment shown, in ticks. */
  at: number;
  shapes: Shape[];
  ghost: Shape[] | null;
}

export class Motion {
  private kept: Kept[] = [];
  /** When tick 0 would have been, on the clock of `at_ms`. */
  private origin_ms: number | null = null;

  constructor(
    public ticks_per_second = 60,
    private readonly by_moment = false,
  ) {}

  private get tick_ms(): number {
    return this.by_moment ? FRAME_MS : 1000 / this.ticks_per_second;
  }

  /** True if time went backwards or leapt: another session, or one that was rejoined. */
  add({ tick: number, at_ms, frame, ghost }: TickMessage): boolean {
    const tick = this.by_moment ? at_ms / FRAME_MS : number;
    const newest = this.kept.at(-1);
    const sample_ms = at_ms - tick * this.tick_ms;
    const leapt =
      newest === undefined ||
      this.origin_ms === null ||
      tick <= newest.tick ||
      Math.abs(sample_ms - this.origin_ms) > JUMP_MS;
    if (leapt) {
      this.kept = [];
      this.origin_ms = sample_ms;
    } else {
      this.origin_ms = (this.origin_ms ?? sample_ms) + (sample_ms - (this.origin_ms ?? sample_ms)) * GAIN;
    }
    this.kept.push({ tick, shapes: shapesOf(frame), ghost: ghost && shapesOf(ghost) });
    if (this.kept.length > KEPT) this.kept.shift();
    return leapt && newest !== undefined;
  }

  /** The shapes of the newest frame. */
  get newest(): Shape[] {
    return this.kept.at(-1)?.shapes ?? [];
  }

  /** The picture at a moment; nothing if there has been no tick. */
  at(now_ms: number): Picture | null {
    const newest = this.kept.at(-1);
    const oldest = this.kept[0];
    if (!newest || !oldest || this.origin_ms === null) return null;
    const wanted = (now_ms - this.origin_ms) / this.tick_ms - (this.by_moment ? FRAMES_BEHIND : BEHIND);
    const at = Math.min(newest.tick, Math.max(oldest.tick, wanted));
    const after = this.kept.findIndex((kept) => kept.tick >= at);
    const to = this.kept[after] ?? newest;
    const from = this.kept[after - 1] ?? to;
    const part = to.tick === from.tick ? 1 : (at - from.tick) / (to.tick - from.tick);
    return {
      at,
      shapes: blend(from.shapes, to.shapes, part),
      ghost: to.ghost && blend(from.ghost ?? to.ghost, to.ghost, part),
    };
  }

  /** Where a shape was in the ticks before a moment, newest first, as far back as it moved without a jump. */
  trail(id: number, at: number, length: number): { x: number; y: number }[] {
    const points: { x: number; y: number }[] = [];
    let epoch: number | null = null;
    for (let i = this.kept.length - 1; i >= 0 && points.length < length; i--) {
      const kept = this.kept[i];
      if (!kept || kept.tick > at) continue;
      const shape = kept.shapes.find((shape) => shape.id === id);
      if (!shape || (epoch !== null && shape.epoch !== epoch)) break;
      epoch = shape.epoch;
      points.push({ x: shape.x, y: shape.y });
    }
    return points;
  }
}

/** Shapes interpolated from one tick to the next. A shape that jumped, or is new, is at its end position. */
function blend(from: Shape[], to: Shape[], part: number): Shape[] {
  const before_by_id = new Map(from.map((shape) => [shape.id, shape]));
  return to.map((shape) => {
    const before = before_by_id.get(shape.id);
    if (!before || before.epoch !== shape.epoch) return shape;
    if (before.x === shape.x && before.y === shape.y && before.angle === shape.angle) return shape;
    return {
      ...shape,
      x: before.x + (shape.x - before.x) * part,
      y: before.y + (shape.y - before.y) * part,
      angle: before.angle + turned(before.angle, shape.angle) * part,
    };
  });
}

/** The shorter way from one direction to another. */
function turned(from: number, to: number): number {
  const way = (to - from) % (2 * Math.PI);
  return Math.abs(way) <= Math.PI ? way : way - Math.sign(way) * 2 * Math.PI;
}
