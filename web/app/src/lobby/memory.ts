// What brings one back to a session: kept as long as the tab, for a reload; another tab is somebody who comes in again.

import type { SessionId } from "./protocol";
import type { Kept, Memory } from "./stay";
import { WINDOW_MS } from "./stay";

const PREFIX = "sametick.session.";

interface Entry extends Kept {
  /** When this page was left, if it was left without a goodbye. */
  left_at_ms?: number;
}

function entryOf(key: string): Entry | null {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null") as Entry | null;
  } catch {
    return null;
  }
}

function keys(): string[] {
  try {
    return Object.keys(sessionStorage).filter((key) => key.startsWith(PREFIX));
  } catch {
    return [];
  }
}

export const memory: Memory = {
  read: (session) => entryOf(PREFIX + session),
  write(session, kept) {
    try {
      if (kept) sessionStorage.setItem(PREFIX + session, JSON.stringify(kept));
      else sessionStorage.removeItem(PREFIX + session);
    } catch {
      // Without storage a reload is somebody who comes in again.
    }
  },
};

/** The page of a session is left, and its seat waits. */
export function leftOpen(session: SessionId): void {
  const entry = entryOf(PREFIX + session);
  if (entry) memory.write(session, { ...entry, left_at_ms: Date.now() } as Kept);
}

export interface Waiting {
  session: SessionId;
  name: string;
  until_ms: number;
}

/** The session whose seat waits for whoever looks at another page meanwhile. */
export function waitingSeat(): Waiting | null {
  for (const key of keys()) {
    const { name, left_at_ms = 0 } = entryOf(key) ?? { name: "" };
    const until_ms = left_at_ms + WINDOW_MS;
    if (until_ms > Date.now()) return { session: key.slice(PREFIX.length), name, until_ms };
  }
  return null;
}
