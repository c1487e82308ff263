// A player in an arena: what they see, and what they do with keys, mouse and thumbs. The map is bare, so a straight way leads
// everywhere and a shot flies until it hits a player; the next action depends on what they see, not on how long they waited.

import { until } from "./until.mjs";

export const KIND = { avatar: 3, wall: 4, crate: 5, preview: 6, bad_preview: 7, projectile: 8, rock: 11 };

/** The same bare map each time, without an end and without bots. */
export const PRACTICE = "bots=no&scenario=practice&seed=7";

/** The same, until a player has three points. */
export const FIELD = "bots=no&scenario=field&seed=7";

/** So near to the middle of the map there is enough room on all sides. */
const MIDDLE = 2;

/** Shots fly farther than this. */
const RANGE = 9;

/** A player who has not moved for this many frames stands still. */
const STILL_FRAMES = 12;

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
      const { status, hud, shapes, ghost, tick, session } = window.sametick ?? {};
      const own = shapes?.find(({ kind, tint }) => kind === 3 && tint === status?.seat);
      return { seat: status?.seat, hud, shapes: shapes ?? [], ghost, own, tick, phase: session?.view?.phase };
    });
  }

  /** Waits until the scene fits the condition, and resolves with it. */
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

  /** Walks a little: towards the middle, where there is room. */
  async walkSome() {
    const { own: from, hud } = await this.finds("itself", ({ own }) => own);
    const key = from.x < hud.size / 2 ? "d" : "a";
    await this.hold([key]);
    await this.finds("that it walks", ({ own }) => own && Math.abs(own.x - from.x) > 1.5);
    await this.hold([]);
    return this.rests();
  }

  /** Walks straight until it is this near to a place. */
  async walkTo(to, near, options = { timeout_ms: 60_000 }) {
    await this.finds(`the way to ${to.x}, ${to.y}`, async ({ own }) => {
      if (!own) return false;
      if (Math.hypot(own.x - to.x, own.y - to.y) < near) return true;
      await this.hold(towards(own, to));
      return false;
    }, options);
    await this.hold([]);
    return this.rests();
  }

  /** Walks to the middle of the map. */
  async walkToTheMiddle(near = MIDDLE) {
    const { hud } = await this.finds("itself", ({ own }) => own);
    return this.walkTo({ x: hud.size / 2, y: hud.size / 2 }, near);
  }

  /** Goes on towards the middle of the map, or stays there; does nothing between two lives. */
  async stepToTheMiddle() {
    const { own, hud } = await this.scene();
    const middle = { x: (hud?.size ?? 0) / 2, y: (hud?.size ?? 0) / 2 };
    await this.hold(own && Math.hypot(own.x - middle.x, own.y - middle.y) > MIDDLE ? towards(own, middle) : []);
  }

  /** Stands still, and with it the map under the mouse. */
  async rests() {
    let last = null;
    return this.finds("itself at rest", ({ own, tick }) => {
      if (!own) return false;
      if (last && Math.hypot(own.x - last.x, own.y - last.y) < 0.001) return tick - last.tick >= STILL_FRAMES;
      last = { x: own.x, y: own.y, tick };
      return false;
    });
  }

  /** Aims at the middle of the map: from there, at its left. */
  async aim() {
    const { own, hud } = await this.finds("itself", ({ own }) => own);
    const [x, y] = [hud.size / 2 - own.x, hud.size / 2 - own.y];
    const far = Math.hypot(x, y);
    await this.pointAt(far > 1 ? { x: own.x + (3 * x) / far, y: own.y + (3 * y) / far } : { x: own.x - 3, y: own.y });
  }

  /** The middle of the tile two steps away, towards the middle of the map: nothing stands on a bare one. */
  async freeTile() {
    const { own, hud } = await this.finds("itself", ({ own }) => own);
    const x = Math.floor(own.x) + (own.x < hud.size / 2 ? 2 : -2);
    return { x: x + 0.5, y: Math.floor(own.y) + 0.5 };
  }

  /** Points at a tile to build there until the condition holds: the pointed tile is sent with the next input. */
  async plans(tile, other) {
    await other.finds("what is planned", async ({ shapes }) => {
      if (shapes.some(({ kind, x, y }) => kind === KIND.preview && x === tile.x && y === tile.y)) return true;
      await this.pointAt(tile);
      return false;
    });
  }

  /** Builds a wall near by. */
  async builds() {
    await this.rests();
    const tile = await this.freeTile();
    await this.page.keyboard.press("1");
    await this.plans(tile, this);
    await this.page.mouse.down();
    await this.page.mouse.up();
    const built = ({ shapes }) => shapes.some(({ kind, x, y }) => kind === KIND.wall && x === tile.x && y === tile.y);
    const scene = await this.finds("its wall", built);
    await this.page.keyboard.press("Escape");
    return { ...scene, tile };
  }

  /** Follows a player and shoots at them until the condition holds. */
  async hunts(what, is_so, options = { timeout_ms: 90_000 }) {
    // A button counts where it goes down: on the map.
    await this.aim();
    await this.page.mouse.down();
    const scene = await this.finds(what, async (scene) => {
      if (is_so(scene)) return true;
      const { own, shapes, seat } = scene;
      const prey = shapes.find(({ kind, tint }) => kind === KIND.avatar && tint !== seat);
      if (!own || !prey) return false;
      const far = Math.hypot(prey.x - own.x, prey.y - own.y);
      await this.hold(far > RANGE ? towards(own, prey) : []);
      // Aimed near by, so that it is on the screen.
      const reach = Math.min(1, 3 / Math.max(far, 0.1));
      await this.pointAt({ x: own.x + (prey.x - own.x) * reach, y: own.y + (prey.y - own.y) * reach });
      return false;
    }, options);
    await this.page.mouse.up();
    await this.hold([]);
    return scene;
  }

  /** Points at a place of the map with the mouse. */
  async pointAt({ x, y }) {
    const at = await this.page.evaluate(([x, y]) => window.sametick?.onPage?.(x, y), [x, y]);
    if (at) await this.page.mouse.move(at.x, at.y);
    return at;
  }
}

/** The keys to walk there. A player who is nearly in line with it walks straight. */
function towards(from, to) {
  const keys = [];
  if (Math.abs(to.x - from.x) > 0.25) keys.push(to.x > from.x ? "d" : "a");
  if (Math.abs(to.y - from.y) > 0.25) keys.push(to.y > from.y ? "s" : "w");
  return keys;
}
