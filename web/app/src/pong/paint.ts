// Draws a court from numbers and colours, without game rules.

import type { Point } from "../game/canvas";
import type { Shape } from "../game/motion";
import { KIND, type PongHud, type SeatHud } from "../worker/messages";
import type { Flash } from "./effects";
import { toScreen, type Lens } from "./lens";
import { label, YOU } from "./words";

export interface Colours {
  court: string;
  edge: string;
  line: string;
  ball: string;
  text: string;
  seats: string[];
}

export interface Scene {
  lens: Lens;
  hud: PongHud | null;
  shapes: Shape[];
  /** The confirmed state, drawn behind the shown one. */
  ghost: Shape[] | null;
  trail: Point[];
  flashes: (Flash & { part: number })[];
  own_seat: number | null;
}

const FONT = "system-ui, sans-serif";

export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const get = (name: string) => style.getPropertyValue(name).trim();
  return {
    court: get("--court"),
    edge: get("--court-edge"),
    line: get("--court-line"),
    ball: get("--ball"),
    text: get("--text"),
    seats: [0, 1, 2, 3].map((seat) => get(`--seat-${seat}`)),
  };
}

export function paint(to: CanvasRenderingContext2D, colours: Colours, scene: Scene): void {
  const { lens } = scene;
  to.save();
  paintCourt(to, colours, lens);
  to.beginPath();
  to.roundRect(lens.box.x, lens.box.y, lens.box.w, lens.box.h, corner(lens));
  to.clip();
  for (const seat of scene.hud?.seats ?? []) paintScore(to, colours, scene, seat);
  paintTrail(to, colours, scene);
  if (scene.ghost) paintGhost(to, colours, lens, scene.ghost);
  for (const shape of scene.shapes) paintShape(to, colours, scene, shape);
  for (const flash of scene.flashes) paintFlash(to, colours, lens, flash);
  to.restore();
}

function paintCourt(to: CanvasRenderingContext2D, colours: Colours, lens: Lens): void {
  const { x, y, w, h } = lens.box;
  to.fillStyle = colours.court;
  to.strokeStyle = colours.edge;
  to.lineWidth = 1;
  to.beginPath();
  to.roundRect(x, y, w, h, corner(lens));
  to.fill();
  to.stroke();
  to.strokeStyle = colours.line;
  to.lineWidth = Math.max(1.5, 1.2 * lens.scale);
  to.setLineDash([4 * lens.scale, 6 * lens.scale]);
  to.beginPath();
  if (Math.abs(w - h) < 1) {
    // With more than two players there is a middle, but no line between two sides.
    to.arc(x + w / 2, y + h / 2, 20 * lens.scale, 0, 2 * Math.PI);
  } else if (w > h) {
    to.moveTo(x + w / 2, y);
    to.lineTo(x + w / 2, y + h);
  } else {
    to.moveTo(x, y + h / 2);
    to.lineTo(x + w, y + h / 2);
  }
  to.stroke();
  to.setLineDash([]);
}

/** A seat's score and name, between the middle and its wall. */
function paintScore(to: CanvasRenderingContext2D, colours: Colours, scene: Scene, seat: SeatHud): void {
  const { lens, hud } = scene;
  if (!hud) return;
  const { w, h } = hud.court;
  const away = { left: [-0.3, 0], right: [0.3, 0], top: [0, -0.31], bottom: [0, 0.29] }[seat.wall];
  const at = toScreen(lens, { x: (away[0] ?? 0) * w, y: (away[1] ?? 0) * h });
  const size = Math.min(w, h) * 0.17 * lens.scale;
  to.textAlign = "center";
  to.textBaseline = "middle";
  to.fillStyle = colours.seats[seat.seat] ?? colours.text;
  to.globalAlpha = 0.6;
  to.font = `700 ${size}px ${FONT}`;
  to.fillText(String(seat.score), at.x, at.y);
  to.globalAlpha = 0.8;
  to.fillStyle = colours.text;
  to.font = `500 ${Math.min(16, Math.max(12, size * 0.28))}px ${FONT}`;
  const room = (seat.wall === "left" || seat.wall === "right" ? 0.36 : 0.6) * lens.scale * Math.min(w, h);
  to.fillText(shortened(to, label(seat), lens.turn === 0 ? room : lens.box.w * 0.8), at.x, at.y + size * 0.5 + 14);
  to.globalAlpha = 1;
}

/** As much of a text as there is room for. */
function shortened(to: CanvasRenderingContext2D, text: string, room: number): string {
  if (to.measureText(text).width <= room) return text;
  const end = text.endsWith(YOU) ? YOU : "";
  let kept = text.slice(0, text.length - end.length);
  while (kept.length > 1 && to.measureText(`${kept}…${end}`).width > room) kept = kept.slice(0, -1);
  return `${kept.trimEnd()}…${end}`;
}

/** A tail behind the ball that gets thinner and fainter. One piece, so that it has no seams. */
function paintTrail(to: CanvasRenderingContext2D, colours: Colours, { lens, trail, shapes }: Scene): void {
  const ball = shapes.find(({ kind }) => kind === KIND.ball);
  if (!ball || trail.length < 2) return;
  const points = untilTurn([ball, ...trail].map((point) => toScreen(lens, point)));
  const [head, tail] = [points[0], points.at(-1)];
  if (!head || !tail || Math.hypot(head.x - tail.x, head.y - tail.y) < 1) return;
  const fade = to.createRadialGradient(head.x, head.y, 0, head.x, head.y, Math.hypot(head.x - tail.x, head.y - tail.y));
  fade.addColorStop(0, colours.ball);
  fade.addColorStop(1, "transparent");
  to.fillStyle = fade;
  to.globalAlpha = 0.22;
  to.beginPath();
  const [one, other] = [edge(points, (ball.w / 2) * lens.scale), edge(points, (-ball.w / 2) * lens.scale)];
  for (const { x, y } of [...one, ...other.reverse()]) to.lineTo(x, y);
  to.fill();
  to.globalAlpha = 1;
}

/** The points up to where the ball bounced: a band cannot be bent that sharply. */
function untilTurn(points: Point[]): Point[] {
  const end = points.findIndex((point, i) => {
    const [before, after] = [points[i - 1], points[i + 1]];
    if (!before || !after) return false;
    const [ax, ay, bx, by] = [point.x - before.x, point.y - before.y, after.x - point.x, after.y - point.y];
    return ax * bx + ay * by < 0.8 * Math.hypot(ax, ay) * Math.hypot(bx, by);
  });
  return end < 0 ? points : points.slice(0, end + 1);
}

/** One side of a tapering band along points. */
function edge(points: Point[], width: number): Point[] {
  return points.map((point, i) => {
    const [before, after] = [points[i - 1] ?? point, points[i + 1] ?? point];
    const length = Math.hypot(after.x - before.x, after.y - before.y) || 1;
    const out = (width * (1 - i / points.length)) / length;
    return { x: point.x - (after.y - before.y) * out, y: point.y + (after.x - before.x) * out };
  });
}

function paintShape(to: CanvasRenderingContext2D, colours: Colours, { lens, own_seat }: Scene, shape: Shape): void {
  if (shape.kind === KIND.ball) to.fillStyle = colours.ball;
  else if (shape.kind === KIND.paddle) to.fillStyle = colours.seats[shape.tint] ?? colours.text;
  else to.fillStyle = colours.line;
  const own = shape.kind === KIND.paddle && shape.tint === own_seat;
  if (own) {
    to.save();
    to.shadowColor = to.fillStyle;
    to.shadowBlur = 7 * lens.scale;
    outline(to, lens, shape, 0);
    to.fill();
    to.restore();
    // A bright edge that no other paddle has.
    to.strokeStyle = colours.text;
    to.lineWidth = Math.max(1.5, 0.7 * lens.scale);
    outline(to, lens, shape, 0.6);
    to.fill();
    to.stroke();
    return;
  }
  outline(to, lens, shape, 0);
  to.fill();
}

function paintGhost(to: CanvasRenderingContext2D, colours: Colours, lens: Lens, ghost: Shape[]): void {
  to.lineWidth = Math.max(1.5, 0.8 * lens.scale);
  to.setLineDash([2.5 * lens.scale, 2 * lens.scale]);
  for (const shape of ghost) {
    if (shape.kind === KIND.wall) continue;
    to.strokeStyle = shape.kind === KIND.ball ? colours.ball : (colours.seats[shape.tint] ?? colours.text);
    to.globalAlpha = 0.75;
    outline(to, lens, shape, 1.5);
    to.stroke();
  }
  to.setLineDash([]);
  to.globalAlpha = 1;
}

function paintFlash(
  to: CanvasRenderingContext2D,
  colours: Colours,
  lens: Lens,
  flash: Flash & { part: number },
): void {
  const at = toScreen(lens, flash);
  const grown = 1 - (1 - flash.part) ** 3;
  to.strokeStyle = colours.seats[flash.tint] ?? colours.ball;
  to.globalAlpha = 0.5 * (1 - flash.part);
  to.lineWidth = Math.max(1, 1.6 * lens.scale * (1 - flash.part));
  to.beginPath();
  to.arc(at.x, at.y, (4 + flash.reach * grown) * lens.scale, 0, 2 * Math.PI);
  to.stroke();
  to.globalAlpha = 1;
}

function outline(to: CanvasRenderingContext2D, lens: Lens, shape: Shape, wider: number): void {
  const at = toScreen(lens, shape);
  to.beginPath();
  if (shape.kind === KIND.ball) {
    to.arc(at.x, at.y, (shape.w / 2 + wider) * lens.scale, 0, 2 * Math.PI);
    return;
  }
  const [w, h] = lens.turn === 0 ? [shape.w, shape.h] : [shape.h, shape.w];
  const [wide, high] = [(w + 2 * wider) * lens.scale, (h + 2 * wider) * lens.scale];
  const round = shape.kind === KIND.paddle ? Math.min(wide, high) / 2 : 0;
  to.roundRect(at.x - wide / 2, at.y - high / 2, wide, high, round);
}

function corner(lens: Lens): number {
  return Math.min(14, 5 * lens.scale);
}
