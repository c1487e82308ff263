// The time, for what counts seconds. It is read anew whenever something is drawn, and while anything shows it, four times a second: a
// stored time would be out of date when a countdown begins.

import { createSubscriber } from "svelte/reactivity";
import { sharedNow } from "./worker/messages";

const EVERY_MS = 250;

const subscribe = createSubscriber((update) => {
  const timer = setInterval(update, EVERY_MS);
  return () => clearInterval(timer);
});

/** Now, on the clock that page and worker share. What reads it is drawn again as time passes. */
export function nowMs(): number {
  subscribe();
  return sharedNow();
}
