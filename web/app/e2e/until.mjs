// Waiting for something to be so. Nothing here waits for a length of time to pass.

import { setTimeout as pause } from "node:timers/promises";

const ASK_EVERY_MS = 50;

/** Asks again and again until the answer is not false, and resolves with it. */
export async function until(what, ask, { timeout_ms = 15_000 } = {}) {
  const end_ms = Date.now() + timeout_ms;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end_ms) throw new Error(`${what}: not within ${timeout_ms / 1000} s`);
    await pause(ASK_EVERY_MS);
  }
}
