// Waiting for something to be so. Nothing here waits for a length of time to pass, and how long something takes is no story's business: a
// limit is there so that what never comes is named.

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
