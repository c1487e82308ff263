// The token that brings a page back to a session after a reload: kept as long as the tab; another tab joins anew.

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
      // Without storage a reload joins anew.
    }
  },
};
