// The view of a spectator: any place on the map, or a player whom it follows.

import type { Point } from "../game/canvas";
import type { Shape } from "../game/motion";
import { HELD, KIND } from "../worker/messages";

/** Tiles in a second, while a key is held. */
const SPEED = 16;

/** How fast the view catches up: this many times the remaining distance per second. */
const CATCH_UP = 9;

/** A frame that comes later than this is no reason to leap. */
const MOST_FRAME_S = 0.1;

export class Lookout {
  /** By seat; none: the view stays where it was left. */
  follows: number | null = null;
  /** None until it has been somewhere: then it is over the middle of the map. */
  private at: Point | null = null;
  private held = 0;
  private last_ms: number | null = null;

  /** These directions are held, as bits. */
  hold(held: number): void {
    this.held = held;
    if (held) this.follows = null;
  }

  /** The map was dragged so far, in tiles. */
  drag(by: Point): void {
    if (!this.at) return;
    this.follows = null;
    this.at = { x: this.at.x - by.x, y: this.at.y - by.y };
  }

  follow(seat: number | null): void {
    this.follows = seat;
  }

  /** The next of these, or the one before; the first or the last if none is followed. */
  cycle(step: 1 | -1, seats: number[]): void {
    const at = this.follows === null ? -1 : seats.indexOf(this.follows);
    const next = at < 0 ? (step > 0 ? 0 : seats.length - 1) : (at + step + seats.length) % seats.length;
    this.follows = seats[next] ?? null;
  }

  /** Follows the player who is shown this near to a place, if any. */
  pick(place: Point, reach: number, shapes: Shape[]): void {
    const away = ({ x, y }: Shape) => Math.hypot(x - place.x, y - place.y);
    const near = shapes.filter((shape) => shape.kind === KIND.avatar && away(shape) <= reach).sort((a, b) => away(a) - away(b));
    if (near[0]) this.follows = near[0].tint;
  }

  /** The place that is looked at now. `kept`: as near to a place as the camera may be. `still`: without what only moves. */
  look(now_ms: number, shapes: Shape[], middle: Point, kept: (place: Point) => Point, still: boolean): Point {
    const passed_s = Math.min(MOST_FRAME_S, Math.max(0, now_ms - (this.last_ms ?? now_ms)) / 1000);
    this.last_ms = now_ms;
    const from = this.at ?? middle;
    const target = shapes.find(({ kind, tint }) => kind === KIND.avatar && tint === this.follows);
    if (this.held) this.at = moved(from, this.held, SPEED * passed_s);
    else if (target) this.at = still ? target : nearer(from, target, 1 - Math.exp(-CATCH_UP * passed_s));
    else this.at = from;
    this.at = kept(this.at);
    return this.at;
  }
}

function nearer(from: Point, to: Point, part: number): Point {
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}

function moved({ x, y }: Point, held: number, far: number): Point {
  const sign = (more: number, less: number) => Number(Boolean(held & more)) - Number(Boolean(held & less));
  const [right, down] = [sign(HELD.right, HELD.left), sign(HELD.down, HELD.up)];
  const length = Math.hypot(right, down) || 1;
  return { x: x + (right / length) * far, y: y + (down / length) * far };
}
