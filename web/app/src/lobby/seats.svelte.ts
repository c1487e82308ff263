// The seats of this browser as pages show them, and the storage that they are in. Without storage, they last as long as the page.

import type { SessionId } from "./protocol";
import { Seats, type OwnSeat, type Store } from "./seats";

/** How often pages read the seats: a countdown is shown. */
const LOOK_MS = 1_000;

const page_alone = new Map<string, string>();

const store: Store = {
  getItem: (key) => attempt(() => localStorage.getItem(key), () => page_alone.get(key) ?? null),
  setItem: (key, value) => attempt(() => localStorage.setItem(key, value), () => void page_alone.set(key, value)),
  removeItem: (key) => attempt(() => localStorage.removeItem(key), () => void page_alone.delete(key)),
  keys: () => attempt(() => Object.keys(localStorage), () => [...page_alone.keys()]),
};

function attempt<T>(act: () => T, otherwise: () => T): T {
  try {
    return act();
  } catch {
    return otherwise();
  }
}

export const seats = new Seats(store, Date.now);

class OwnSeats {
  all: OwnSeat[] = $state.raw(seats.all());
  now_ms = $state(Date.now());
  private subscribers = 0;
  private timer: ReturnType<typeof setInterval> | undefined;

  /** Keeps reading until the returned function is called. */
  watch(): () => void {
    if (this.subscribers++ === 0) {
      this.look();
      this.timer = setInterval(this.look, LOOK_MS);
      addEventListener("storage", this.look);
    }
    return () => {
      if (--this.subscribers > 0) return;
      clearInterval(this.timer);
      removeEventListener("storage", this.look);
    };
  }

  of(session: SessionId): OwnSeat | null {
    return this.all.find((seat) => seat.session === session) ?? null;
  }

  private readonly look = (): void => {
    this.all = seats.all();
    this.now_ms = Date.now();
  };
}

export const own_seats = new OwnSeats();
