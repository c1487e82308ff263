// The sessions that this browser is a member of, shared by all its tabs: a new tab finds a seat that another tab has
// left. It has no secret: the host recognises its members by the lobby's token.

import type { SessionId } from "./protocol";
import { WINDOW_MS } from "./stay";

const PREFIX = "sametick.seat.";

/** A page in a session writes this every second. After this time without a write the page counts as gone. */
const SILENT_MS = 5_000;

/** A session that this browser is a member of. */
export interface OwnSeat {
  session: SessionId;
  name: string;
  /** The host keeps the seat at least until then. */
  until_ms: number;
  /** Whether a page of this browser is in it now. */
  is_open: boolean;
}

interface Entry {
  name: string;
  /** The page that was in it last. */
  page: string;
  seen_at_ms: number;
  is_left: boolean;
}

export type Store = Pick<Storage, "getItem" | "setItem" | "removeItem"> & { keys(): string[] };

export class Seats {
  constructor(
    private readonly store: Store,
    private readonly now_ms: () => number,
  ) {}

  /** A page is in a session; called every second. */
  hold(session: SessionId, name: string, page: string): void {
    this.write(session, { name, page, seen_at_ms: this.now_ms(), is_left: false });
  }

  /** A page was closed without leaving its session: the seat is kept, unless another page has it by now. */
  leave(session: SessionId, page: string): void {
    const entry = this.read(session);
    if (entry?.page === page) this.write(session, { ...entry, seen_at_ms: this.now_ms(), is_left: true });
  }

  /** This browser is not in the session any more. */
  forget(session: SessionId): void {
    this.store.removeItem(PREFIX + session);
  }

  of(session: SessionId): OwnSeat | null {
    const entry = this.read(session);
    if (!entry) return null;
    const { name, seen_at_ms, is_left } = entry;
    const until_ms = seen_at_ms + WINDOW_MS;
    if (until_ms <= this.now_ms()) return null;
    return { session, name, until_ms, is_open: !is_left && this.now_ms() - seen_at_ms < SILENT_MS };
  }

  /** All entries, the one that was left last first. Expired ones are removed. */
  all(): OwnSeat[] {
    const sessions = this.store.keys().filter((key) => key.startsWith(PREFIX)).map((key) => key.slice(PREFIX.length));
    const seats = sessions.map((session) => this.of(session) ?? void this.forget(session));
    return seats.filter((seat) => seat !== undefined).sort((a, b) => b.until_ms - a.until_ms);
  }

  private read(session: SessionId): Entry | null {
    try {
      const entry = JSON.parse(this.store.getItem(PREFIX + session) ?? "null") as Entry | null;
      return typeof entry?.seen_at_ms === "number" && entry.seen_at_ms <= this.now_ms() ? entry : null;
    } catch {
      return null;
    }
  }

  private write(session: SessionId, entry: Entry): void {
    this.store.setItem(PREFIX + session, JSON.stringify(entry));
  }
}
