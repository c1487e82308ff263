// Converts keyboard, touch, mouse and gamepad into input: held directions, a pointed place, a press.

import { within, type Point, type Size } from "../game/canvas";
import { isPressable, isTyping, keyBit } from "../game/keys";
import type { Wanted } from "../game/play.svelte";
import { HELD } from "../worker/messages";
import { heldInCourt, pointed, type Lens } from "./lens";

const ACTION_KEYS = new Set(["Space", "Enter"]);

/** A finger that was down no longer and moved no further than this has tapped. */
const TAP_MS = 250;
const TAP_PX = 12;

/** How far a stick must be moved to count. */
const STICK = 0.35;

export class Controls {
  private keys = 0;
  private pad = 0;
  private pad_pressed = false;
  private finger: { id: number; from: Point; at: Point; since_ms: number } | null = null;
  private last: Wanted = { held: 0, x: NaN, y: NaN };

  constructor(
    private readonly view: () => { lens: Lens; stage: Size },
    private readonly wanted: (wanted: Wanted) => void,
    private readonly press: () => void,
  ) {}

  /** Listens on the page for keys and on an element for fingers, until the returned function is called. */
  listen(element: HTMLElement): () => void {
    const stop = new AbortController();
    const { signal } = stop;
    addEventListener("keydown", this.keyDown, { signal });
    addEventListener("keyup", this.keyUp, { signal });
    addEventListener("blur", this.release, { signal });
    document.addEventListener("visibilitychange", this.release, { signal });
    element.addEventListener("pointerdown", (event) => this.fingerDown(element, event), { signal });
    element.addEventListener("pointermove", this.fingerMoves, { signal });
    element.addEventListener("pointerup", this.fingerUp, { signal });
    element.addEventListener("pointercancel", this.fingerLost, { signal });
    element.addEventListener("contextmenu", (event) => event.preventDefault(), { signal });
    return () => stop.abort();
  }

  /** Gamepads have no events for their sticks: they are looked at before every frame. */
  lookAtGamepads(): void {
    let held = 0;
    let pressed = false;
    for (const pad of navigator.getGamepads?.() ?? []) {
      if (!pad?.connected) continue;
      const [x = 0, y = 0] = pad.axes;
      const down = (button: number) => pad.buttons[button]?.pressed ?? false;
      if (y < -STICK || down(12)) held |= HELD.up;
      if (y > STICK || down(13)) held |= HELD.down;
      if (x < -STICK || down(14)) held |= HELD.left;
      if (x > STICK || down(15)) held |= HELD.right;
      pressed ||= down(0) || down(9);
    }
    if (pressed && !this.pad_pressed) this.press();
    this.pad_pressed = pressed;
    if (held !== this.pad) {
      this.pad = held;
      this.tell();
    }
  }

  /** Releases all keys and buttons, for example when the page loses focus. */
  release = (): void => {
    this.keys = 0;
    this.finger = null;
    this.tell();
  };

  private keyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const bit = keyBit(event.code);
    if (bit !== undefined) {
      event.preventDefault();
      this.keys |= bit;
      this.tell();
    } else if (ACTION_KEYS.has(event.code) && !isPressable(event.target)) {
      event.preventDefault();
      if (!event.repeat) this.press();
    }
  };

  private keyUp = (event: KeyboardEvent): void => {
    const bit = keyBit(event.code);
    if (bit === undefined) return;
    this.keys &= ~bit;
    this.tell();
  };

  private fingerDown(element: HTMLElement, event: PointerEvent): void {
    if (event.target !== element && !(event.target instanceof HTMLCanvasElement)) return;
    // A second finger is the button.
    if (this.finger) return this.press();
    element.setPointerCapture(event.pointerId);
    const at = within(element, event);
    this.finger = { id: event.pointerId, from: at, at, since_ms: event.timeStamp };
    this.tell();
  }

  private fingerMoves = (event: PointerEvent): void => {
    if (event.pointerId !== this.finger?.id) return;
    this.finger.at = within(event.currentTarget as HTMLElement, event);
    this.tell();
  };

  private fingerUp = (event: PointerEvent): void => {
    const { finger } = this;
    if (event.pointerId !== finger?.id) return;
    const moved = Math.hypot(finger.at.x - finger.from.x, finger.at.y - finger.from.y);
    if (event.timeStamp - finger.since_ms < TAP_MS && moved < TAP_PX) this.press();
    this.fingerLost(event);
  };

  private fingerLost = (event: PointerEvent): void => {
    if (event.pointerId !== this.finger?.id) return;
    this.finger = null;
    this.tell();
  };

  private tell(): void {
    const { lens, stage } = this.view();
    const held = heldInCourt(lens, this.keys | this.pad);
    const { x, y } = this.finger ? pointed(lens, stage, this.finger.at) : { x: NaN, y: NaN };
    const wanted = { held, x, y };
    if (Object.is(wanted.x, this.last.x) && Object.is(wanted.y, this.last.y) && held === this.last.held) return;
    this.last = wanted;
    this.wanted(wanted);
  }
}
