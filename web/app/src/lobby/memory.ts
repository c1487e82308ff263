// What brings one back to a session: kept as long as the tab, for a reload; another tab is somebody who comes in again.

import type { Kept, Memory } from "./stay";

const PREFIX = "sametick.session.";

export const memory: Memory = {
  read(session) {
    try {
      return JSON.parse(sessionStorage.getItem(PREFIX + session) ?? "null") as Kept | null;
    } catch {
      return null;
    }
  },
  write(session, kept) {
    try {
      if (kept) sessionStorage.setItem(PREFIX + session, JSON.stringify(kept));
      else sessionStorage.removeItem(PREFIX + session);
    } catch {
      // Without storage a reload is somebody who comes in again.
    }
  },
};
