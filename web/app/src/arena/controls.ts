// Converts keyboard, mouse and touch into arena's input: walk, aim, fire, build.

import { within, type Point } from "../game/canvas";
import { hasOwnKeys, isPressable, isTyping, keyBit } from "../game/keys";
import type { Wanted } from "../game/play.svelte";
import { HELD, TOOL, type Tool } from "../worker/messages";
import { toMap, type Camera } from "./camera";
import { DEAD_PX, heldBy, walks } from "./thumbs";

const TOOL_KEYS: Record<string, Tool> = {
  Digit1: TOOL.wall,
  Digit2: TOOL.crate,
  Digit3: TOOL.remove,
  KeyX: TOOL.remove,
};

/** Without a pointer, the aim is this many tiles away. */
const AIM_TILES = 6;

/** For so long after a tap it is meant, and seen, what was tapped on. */
const POINTED_MS = 350;

/** Places closer together than this part of a tile are the same. */
const GRAIN = 64;

/** A thumb on the glass. */
export interface Thumb {
  id: number;
  does: "walk" | "aim" | "point";
  from: Point;
  at: Point;
}

export interface Surroundings {
  camera: Camera;
  /** The own avatar, if there is one. */
  own: Point | null;
  tool: Tool;
}

export interface Hears {
  wanted(wanted: Wanted): void;
  /** Builds, or takes away, what is pointed at. */
  press(): void;
  choose(tool: Tool): void;
  scores(shown: boolean): void;
  /** Shows or hides the characters. */
  characters(): void;
  /** The first use of a kind of input, and of which kind. */
  acted(touch: boolean): void;
}

export class Controls {
  thumbs: Thumb[] = [];
  /** Where the mouse is on the stage, or where a finger pointed last. */
  pointer: Point | null = null;
  private keys = 0;
  /** Whether the mouse's button is down, or the space bar. */
  private mouse = false;
  private space = false;
  /** The aim without a pointer. */
  private way: Point = { x: 1, y: 0 };
  private built_on = "";
  private last: Wanted = { held: -1, x: 0, y: 0, tool: TOOL.none };
  private last_tool: Tool = TOOL.wall;

  constructor(
    private readonly look: () => Surroundings,
    private readonly hears: Hears,
  ) {}

  /** Listens on the page for keys and on an element for fingers, until the returned function is called. */
  listen(element: HTMLElement): () => void {
    const stop = new AbortController();
    const { signal } = stop;
    // Before others hear of a key: escape first leaves what is being done here.
    addEventListener("keydown", this.keyDown, { signal, capture: true });
    addEventListener("keyup", this.keyUp, { signal });
    addEventListener("blur", this.release, { signal });
    document.addEventListener("visibilitychange", this.release, { signal });
    element.addEventListener("pointerdown", (event) => this.down(element, event), { signal });
    element.addEventListener("pointermove", (event) => this.moves(element, event), { signal });
    element.addEventListener("pointerup", this.up, { signal });
    element.addEventListener("pointercancel", this.lost, { signal });
    element.addEventListener("contextmenu", (event) => event.preventDefault(), { signal });
    return () => stop.abort();
  }

  /** Says what is wanted now. Called for every frame: the map moves under a pointer that rests. */
  tell(): void {
    const { tool } = this.look();
    const held = this.held(tool);
    const { x, y } = this.target(held);
    const grained = (part: number) => Math.round(part * GRAIN) / GRAIN;
    const wanted = { held, x: grained(x), y: grained(y), tool };
    const { last } = this;
    const same = Object.is(wanted.x, last.x) && Object.is(wanted.y, last.y);
    if (same && held === last.held && tool === last.tool) return;
    this.last = wanted;
    this.hears.wanted(wanted);
  }

  /** Takes a tool, or puts it away if it is in hand. */
  choose(tool: Tool): void {
    const next = this.look().tool === tool ? TOOL.none : tool;
    if (next !== TOOL.none) this.last_tool = next;
    this.mouse = this.space = false;
    this.hears.choose(next);
    this.tell();
  }

  /** Releases all keys and buttons, for example when the page loses focus. */
  release = (): void => {
    this.keys = 0;
    this.mouse = this.space = false;
    this.thumbs = [];
    this.hears.scores(false);
    this.tell();
  };

  private held(tool: Tool): number {
    const walk = this.thumbs.find(({ does }) => does === "walk");
    const aim = this.thumbs.find(({ does }) => does === "aim");
    const fires = tool === TOOL.none && (this.mouse || this.space || (aim !== undefined && far(aim) >= DEAD_PX));
    return this.keys | (walk ? heldBy(apart(walk)) : 0) | (fires ? HELD.fire : 0);
  }

  /** The place that is aimed at, in tiles; none in build mode without a pointer. */
  private target(held: number): Point {
    const { camera, own, tool } = this.look();
    const aim = this.thumbs.find(({ does }) => does === "aim");
    if (aim && far(aim) >= DEAD_PX) this.way = apart(aim);
    else if (this.pointer) return toMap(camera, this.pointer);
    else if (tool !== TOOL.none) return { x: NaN, y: NaN };
    else if (held & 15) this.way = direction(held);
    const length = Math.hypot(this.way.x, this.way.y) || 1;
    const from = own ?? camera.at;
    return { x: from.x + (this.way.x / length) * AIM_TILES, y: from.y + (this.way.y / length) * AIM_TILES };
  }

  private keyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    // While the arrows choose something, the letters still walk.
    if (hasOwnKeys(event.target) && /^(Arrow|Escape)/.test(event.code)) return;
    const { tool } = this.look();
    const bit = keyBit(event.code);
    const chosen = TOOL_KEYS[event.code];
    if (bit !== undefined) this.keys |= bit;
    else if (event.code === "Space" && !isPressable(event.target)) this.spaceDown(event, tool);
    else if (event.code === "KeyQ") this.hears.scores(true);
    else if (event.code === "KeyC" && !event.repeat) this.hears.characters();
    else if (event.code === "KeyB" && !event.repeat) this.choose(tool === TOOL.none ? this.last_tool : tool);
    else if (chosen !== undefined && !event.repeat) this.choose(chosen);
    else if (event.code === "Escape" && tool !== TOOL.none) this.choose(tool);
    else return;
    event.preventDefault();
    this.hears.acted(false);
    this.tell();
  };

  private spaceDown(event: KeyboardEvent, tool: Tool): void {
    if (tool === TOOL.none) this.space = true;
    else if (!event.repeat) this.hears.press();
  }

  private keyUp = (event: KeyboardEvent): void => {
    const bit = keyBit(event.code);
    if (bit !== undefined) this.keys &= ~bit;
    else if (event.code === "Space") this.space = false;
    else if (event.code === "KeyQ") this.hears.scores(false);
    else return;
    this.tell();
  };

  private down(element: HTMLElement, event: PointerEvent): void {
    if (event.target !== element && !(event.target instanceof HTMLCanvasElement)) return;
    element.setPointerCapture(event.pointerId);
    const at = within(element, event);
    const { camera, tool } = this.look();
    const building = tool !== TOOL.none;
    this.hears.acted(event.pointerType === "touch");
    if (event.pointerType === "touch") {
      const does = walks(at, camera.stage, building) ? "walk" : building ? "point" : "aim";
      // One thumb for each: another one at the same stick is a palm.
      if (this.thumbs.some((thumb) => thumb.does === does)) return;
      this.thumbs.push({ id: event.pointerId, does, from: at, at });
      this.pointer = does === "point" ? at : does === "aim" ? null : this.pointer;
    } else {
      this.pointer = at;
      if (event.button === 0) this.mouse = true;
      if (event.button === 0 && building) this.build(true);
    }
    this.tell();
  }

  private moves(element: HTMLElement, event: PointerEvent): void {
    const at = within(element, event);
    const thumb = this.thumbs.find(({ id }) => id === event.pointerId);
    if (thumb) thumb.at = at;
    if (thumb ? thumb.does === "point" : event.pointerType !== "touch") this.pointer = at;
    // With the button down, whole rows are built.
    if (this.mouse && this.look().tool !== TOOL.none) this.build(false);
  }

  /** Builds on the tile that is pointed at, once if the pointer rests. */
  private build(again: boolean): void {
    const { x, y } = this.target(0);
    const tile = `${Math.floor(x)} ${Math.floor(y)}`;
    if (!again && tile === this.built_on) return;
    this.built_on = tile;
    this.tell();
    this.hears.press();
  }

  private up = (event: PointerEvent): void => {
    const thumb = this.thumbs.find(({ id }) => id === event.pointerId);
    if (thumb?.does === "point" && this.look().tool !== TOOL.none) {
      this.build(true);
      setTimeout(() => this.pointsNoMore(thumb.at), POINTED_MS);
    }
    this.lost(event);
  };

  /** A finger that has tapped is gone; unless another one points, so is what it pointed at. */
  private pointsNoMore(at: Point): void {
    if (this.pointer !== at) return;
    this.pointer = null;
    this.tell();
  }

  private lost = (event: PointerEvent): void => {
    if (event.pointerType !== "touch") this.mouse = false;
    this.thumbs = this.thumbs.filter(({ id }) => id !== event.pointerId);
    this.tell();
  };
}

function apart({ from, at }: Thumb): Point {
  return { x: at.x - from.x, y: at.y - from.y };
}

function far(thumb: Thumb): number {
  const { x, y } = apart(thumb);
  return Math.hypot(x, y);
}

function direction(held: number): Point {
  const sign = (more: number, less: number) => Number(Boolean(held & more)) - Number(Boolean(held & less));
  return { x: sign(HELD.right, HELD.left), y: sign(HELD.down, HELD.up) };
}
