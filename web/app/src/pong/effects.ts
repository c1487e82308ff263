// Visual effects of events that flash and fade. The shapes have the ball's position, the events only its action.

import type { Point } from "../game/canvas";
import type { Motion, Picture, Shape } from "../game/motion";
import { EVENT, KIND } from "../worker/messages";

export interface Flash {
  x: number;
  y: number;
  /** The seat whose colour it has, or -1. */
  tint: number;
  since_ms: number;
  /** How far it grows, in court units. */
  reach: number;
}

const LASTS_MS = 420;

/** How many ticks the tail of the ball is long. */
const TRAIL = 12;

export class Effects {
  private flashes: Flash[] = [];

  add(events: number, shapes: Shape[], now_ms: number): void {
    const reach = events & EVENT.point ? 46 : events & EVENT.paddle ? 18 : events & EVENT.wall ? 11 : 0;
    const ball = shapes.find(({ kind }) => kind === KIND.ball);
    if (!reach || !ball) return;
    const paddle = events & EVENT.paddle ? nearest(shapes, ball) : undefined;
    this.flashes.push({ x: ball.x, y: ball.y, tint: paddle?.tint ?? -1, since_ms: now_ms, reach });
  }

  /** Those still to be seen, each with how much of its life is over. */
  at(now_ms: number): (Flash & { part: number })[] {
    this.flashes = this.flashes.filter(({ since_ms }) => now_ms - since_ms < LASTS_MS);
    return this.flashes.map((flash) => ({ ...flash, part: Math.max(0, (now_ms - flash.since_ms) / LASTS_MS) }));
  }
}

/** Where the ball of a picture was in the ticks before. */
export function tailOf(motion: Motion, picture: Picture | null): Point[] {
  const ball = picture?.shapes.find(({ kind }) => kind === KIND.ball);
  return ball && picture ? motion.trail(ball.id, picture.at, TRAIL) : [];
}

function nearest(shapes: Shape[], ball: Shape): Shape | undefined {
  const gap = (bar: Shape) =>
    Math.max(Math.abs(bar.x - ball.x) - bar.w / 2, Math.abs(bar.y - ball.y) - bar.h / 2);
  return shapes
    .filter(({ kind }) => kind === KIND.paddle)
    .reduce<Shape | undefined>((best, bar) => (best && gap(best) <= gap(bar) ? best : bar), undefined);
}
