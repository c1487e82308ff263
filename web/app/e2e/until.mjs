// Waits for a condition. No story waits for a fixed time or measures how long something takes: a
// limit only ends a wait for a condition that never holds.

import { setTimeout as pause } from "node:timers/promises";

const ASK_EVERY_MS = 50;

/** After so long it is not late but missing, also on a machine that has much else to do. */
export const LIMIT_MS = 60_000;

/** Asks again and again until the answer is not false, and resolves with it. */
export async function until(what, ask, { timeout_ms = LIMIT_MS } = {}) {
  const end_ms = Date.now() + timeout_ms;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end_ms) throw new Error(`${what}: not within ${timeout_ms / 1000} s`);
    await pause(ASK_EVERY_MS);
  }
}
