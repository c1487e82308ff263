// Somebody in an arena: what they see of it, and what they do with keys, mouse and thumbs.

import assert from "node:assert/strict";
import { until } from "./until.mjs";

export const KIND = { avatar: 3, wall: 4, crate: 5, preview: 6, bad_preview: 7, projectile: 8, rock: 11 };

/** Somebody who walks and does not get on for so many looks goes around what is in the way. */
const STUCK_LOOKS = 6;

export class Fighter {
  #player;
  #held = new Set();

  constructor(player) {
    this.#player = player;
  }

  get page() {
    return this.#player.page;
  }

  /** What is drawn at this moment, and what is said about it. */
  scene() {
    return this.page.evaluate(() => {
      const { status, hud, shapes, ghost, tick } = window.sametick ?? {};
      const own = shapes?.find(({ kind, tint }) => kind === 3 && tint === status?.seat);
      return { seat: status?.seat, hud, shapes: shapes ?? [], ghost, own, tick };
    });
  }

  /** Waits until the scene is as told, and resolves with it. */
  async finds(what, is_so, options) {
    return until(`${this.#player.name} finds ${what}`, async () => {
      const scene = await this.scene();
      return (await is_so(scene)) && scene;
    }, options);
  }

  /** Is alive, and in the arena. */
  async lives(options) {
    await this.#player.plays(options);
    return this.finds("itself", ({ own }) => own, options);
  }

  /** Holds the keys of these directions, and no others. */
  async hold(keys) {
    for (const key of this.#held) if (!keys.includes(key)) await this.page.keyboard.up(key);
    for (const key of keys) if (!this.#held.has(key)) await this.page.keyboard.down(key);
    this.#held = new Set(keys);
  }

  /** Walks a little, in whichever direction there is room. */
  async walkSome() {
    const { own: from } = await this.finds("itself", ({ own }) => own);
    let looks = 0;
    const keys = ["d", "s", "a", "w"];
    const there = await this.finds("that it walks", async ({ own }) => {
      if (own && Math.hypot(own.x - from.x, own.y - from.y) > 1.5) return true;
      await this.hold([keys[Math.floor(looks++ / STUCK_LOOKS) % keys.length]]);
      return false;
    });
    await this.hold([]);
    return there;
  }

  /** Walks until it is this near to a place, around what is in the way. */
  async walkTo(to, near, options = { timeout_ms: 30_000 }) {
    const scene = await this.finds(`the way to ${to.x}, ${to.y}`, async ({ own, shapes, hud }) => {
      if (!own) return false;
      if (Math.hypot(own.x - to.x, own.y - to.y) < near) return true;
      await this.hold(towards(own, nextStep(own, to, shapes, hud.size)));
      return false;
    }, options);
    await this.hold([]);
    return scene;
  }

  /** Aims at a place near by, in a direction. */
  async aim(angle = 0) {
    const { own } = await this.scene();
    if (own) await this.pointAt({ x: own.x + 3 * Math.cos(angle), y: own.y + 3 * Math.sin(angle) });
  }

  /** Aims in one direction after the other until somebody has found a shot: one may end at once, at a rock beside it. */
  async aimsUntil(other, what, is_found) {
    let looks = 0;
    await other.finds(what, async (scene) => {
      if (is_found(scene)) return true;
      const turn = looks++ / STUCK_LOOKS;
      if (Number.isInteger(turn)) await this.aim(turn);
      return false;
    });
  }

  /** The middle of a tile two steps away on which nothing stands. */
  async freeTile(own) {
    const { shapes, hud } = await this.scene();
    const ways = [[2, 0], [-2, 0], [0, 2], [0, -2], [2, 2], [-2, -2], [2, -2], [-2, 2]];
    const tiles = ways.map(([x, y]) => ({ x: Math.floor(own.x) + x + 0.5, y: Math.floor(own.y) + y + 0.5 }));
    const inside = tiles.filter(({ x, y }) => Math.min(x, y) > 0 && Math.max(x, y) < hud.size);
    const things = shapes.filter(({ kind }) => [KIND.avatar, KIND.wall, KIND.crate, KIND.rock].includes(kind));
    const free = inside.find((tile) => !things.some(({ x, y }) => Math.hypot(x - tile.x, y - tile.y) < 1));
    assert.ok(free, "there is a free tile");
    return free;
  }

  /** Points at a tile to build there until somebody has found that: the map may still move under the mouse. */
  async plans(tile, other) {
    await other.finds("what is planned", async ({ shapes }) => {
      if (shapes.some(({ kind, x, y }) => kind === KIND.preview && x === tile.x && y === tile.y)) return true;
      await this.pointAt(tile);
      return false;
    });
  }

  /** Builds a wall near by. */
  async builds() {
    const { own } = await this.finds("itself", ({ own }) => own);
    const tile = await this.freeTile(own);
    await this.page.keyboard.press("1");
    await this.plans(tile, this);
    await this.page.mouse.down();
    await this.page.mouse.up();
    const built = ({ shapes }) => shapes.some(({ kind, x, y }) => kind === KIND.wall && x === tile.x && y === tile.y);
    const scene = await this.finds("its wall", built);
    await this.page.keyboard.press("Escape");
    return { ...scene, tile };
  }

  /** Points at a place of the map with the mouse. */
  async pointAt({ x, y }) {
    const at = await this.page.evaluate(([x, y]) => window.sametick.onPage(x, y), [x, y]);
    await this.page.mouse.move(at.x, at.y);
    return at;
  }
}

/** The keys that lead there. Who is nearly in line with it walks straight. */
function towards(from, to) {
  const keys = [];
  if (Math.abs(to.x - from.x) > 0.25) keys.push(to.x > from.x ? "d" : "a");
  if (Math.abs(to.y - from.y) > 0.25) keys.push(to.y > from.y ? "s" : "w");
  return keys;
}

/** The middle of the tile to walk to next: the neighbour from which the way is shortest. */
function nextStep(from, to, shapes, size) {
  const left = lengths(to, shapes, size);
  const [x, y] = [Math.floor(from.x), Math.floor(from.y)];
  const steps = neighbours(x, y).filter(([x, y]) => left.has(x * size + y));
  steps.sort((one, other) => left.get(one[0] * size + one[1]) - left.get(other[0] * size + other[1]));
  return steps.length > 0 ? { x: steps[0][0] + 0.5, y: steps[0][1] + 0.5 } : to;
}

/** How long the way is from every tile on which nothing stands. */
function lengths(to, shapes, size) {
  const solid = new Set();
  for (const { kind, x, y } of shapes)
    if ([KIND.wall, KIND.crate, KIND.rock].includes(kind)) solid.add(Math.floor(x) * size + Math.floor(y));
  const start = [Math.floor(to.x), Math.floor(to.y)];
  const left = new Map([[start[0] * size + start[1], 0]]);
  const queue = [start];
  for (const [x, y] of queue) {
    for (const [nx, ny] of neighbours(x, y)) {
      const tile = nx * size + ny;
      if (Math.min(nx, ny) < 0 || Math.max(nx, ny) >= size || solid.has(tile) || left.has(tile)) continue;
      left.set(tile, left.get(x * size + y) + 1);
      queue.push([nx, ny]);
    }
  }
  return left;
}

const neighbours = (x, y) => [[x + 1, y], [x - 1, y], [x, y + 1], [x, y - 1]];
