// Input of a spectator: keyboard, mouse and touch move the view and choose whom it follows.

import { within, type Point } from "../game/canvas";
import { hasOwnKeys, isTyping, keyBit } from "../game/keys";
import type { Shape } from "../game/motion";
import { toMap, type Camera } from "./camera";
import type { Lookout } from "./lookout";

/** A pointer that has moved less than this has not dragged. */
const DRAG_PX = 6;

/** How near to a player a click has to be; a finger covers more than a tile may. */
const REACH_TILES = 0.9;
const REACH_PX = 30;

export interface Seen {
  camera: Camera;
  shapes: Shape[];
}

export interface WatchingHears {
  /** The next player is to be followed, or the one before. */
  cycle(step: 1 | -1): void;
  scores(shown: boolean): void;
  /** After any input: the followed player may have changed. `touch`: whether by touch. */
  acted(touch: boolean): void;
}

export class Watching {
  private keys = 0;
  private finger: { id: number; at: Point; far: number } | null = null;

  constructor(
    private readonly lookout: Lookout,
    private readonly look: () => Seen,
    private readonly hears: WatchingHears,
  ) {}

  /** Listens on the page for keys and on an element for fingers, until the returned function is called. */
  listen(element: HTMLElement): () => void {
    const stop = new AbortController();
    const { signal } = stop;
    addEventListener("keydown", this.keyDown, { signal, capture: true });
    addEventListener("keyup", this.keyUp, { signal });
    addEventListener("blur", this.release, { signal });
    element.addEventListener("pointerdown", (event) => this.down(element, event), { signal });
    element.addEventListener("pointermove", (event) => this.moves(element, event), { signal });
    element.addEventListener("pointerup", this.up, { signal });
    element.addEventListener("pointercancel", () => (this.finger = null), { signal });
    element.addEventListener("contextmenu", (event) => event.preventDefault(), { signal });
    return () => stop.abort();
  }

  private release = (): void => {
    this.keys = 0;
    this.lookout.hold(0);
    this.finger = null;
    this.hears.scores(false);
  };

  private keyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || hasOwnKeys(event.target)) return;
    const bit = keyBit(event.code);
    if (bit !== undefined) this.lookout.hold((this.keys |= bit));
    else if (event.code === "KeyF" && !event.repeat) this.hears.cycle(event.shiftKey ? -1 : 1);
    else if (event.code === "KeyQ") this.hears.scores(true);
    else if (event.code === "Escape" && this.lookout.follows !== null) this.lookout.follow(null);
    else return;
    event.preventDefault();
    this.hears.acted(false);
  };

  private keyUp = (event: KeyboardEvent): void => {
    const bit = keyBit(event.code);
    if (bit !== undefined) this.lookout.hold((this.keys &= ~bit));
    else if (event.code === "KeyQ") this.hears.scores(false);
  };

  private down(element: HTMLElement, event: PointerEvent): void {
    if (event.target !== element && !(event.target instanceof HTMLCanvasElement)) return;
    if (this.finger || event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    this.finger = { id: event.pointerId, at: within(element, event), far: 0 };
    this.hears.acted(event.pointerType === "touch");
  }

  private moves(element: HTMLElement, event: PointerEvent): void {
    const { finger } = this;
    if (event.pointerId !== finger?.id) return;
    const at = within(element, event);
    const by = { x: at.x - finger.at.x, y: at.y - finger.at.y };
    finger.far += Math.hypot(by.x, by.y);
    if (finger.far < DRAG_PX) return;
    finger.at = at;
    const { scale } = this.look().camera;
    this.lookout.drag({ x: by.x / scale, y: by.y / scale });
    this.hears.acted(event.pointerType === "touch");
  }

  private up = (event: PointerEvent): void => {
    const { finger } = this;
    if (event.pointerId !== finger?.id) return;
    this.finger = null;
    if (finger.far >= DRAG_PX) return;
    const { camera, shapes } = this.look();
    this.lookout.pick(toMap(camera, finger.at), Math.max(REACH_TILES, REACH_PX / camera.scale), shapes);
    this.hears.acted(event.pointerType === "touch");
  };
}
