// Keys for directions, and keys that other elements of the page use.

import { HELD } from "../worker/messages";

const DIRECTIONS: Record<string, number> = {
  ArrowUp: HELD.up,
  ArrowDown: HELD.down,
  ArrowLeft: HELD.left,
  ArrowRight: HELD.right,
  KeyW: HELD.up,
  KeyS: HELD.down,
  KeyA: HELD.left,
  KeyD: HELD.right,
};

/** The direction that a key holds, as a bit. */
export function keyBit(code: string): number | undefined {
  return DIRECTIONS[code];
}

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
}

/** Space and enter belong to a focused button or link. */
export function isPressable(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("button, a, summary, select") !== null;
}

/** The focused element handles keys itself. */
export function hasOwnKeys(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("[data-own-keys]") !== null;
}
