import { expect, test } from "vitest";
import { Seats, type Store } from "./seats";

const DEN = "0000000100000001000000000000004d";
const CLUB = "0000000100000001000000000000004e";

function browser() {
  const kept = new Map<string, string>();
  const store: Store = {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
    keys: () => [...kept.keys()],
  };
  const clock = { ms: 1_000_000 };
  return { kept, clock, seats: new Seats(store, () => clock.ms) };
}

test("a seat waits for a minute after its page was closed", () => {
  const { seats, clock } = browser();
  seats.hold(DEN, "Tuesday", "a");
  expect(seats.of(DEN)).toMatchObject({ name: "Tuesday", is_open: true });
  clock.ms += 1_000;
  seats.leave(DEN, "a");
  expect(seats.of(DEN)).toEqual({ session: DEN, name: "Tuesday", until_ms: clock.ms + 60_000, is_open: false });
  clock.ms += 59_999;
  expect(seats.all()).toHaveLength(1);
  clock.ms += 1;
  expect([seats.of(DEN), seats.all()]).toEqual([null, []]);
});

test("a page that was killed counts as gone after a few seconds", () => {
  const { seats, clock } = browser();
  seats.hold(DEN, "Tuesday", "a");
  clock.ms += 4_999;
  expect(seats.of(DEN)?.is_open).toBe(true);
  clock.ms += 1;
  expect(seats.of(DEN)?.is_open).toBe(false);
  clock.ms += 55_000;
  expect(seats.of(DEN)).toBe(null);
});

test("closing the earlier of two tabs keeps the seat of the later", () => {
  const { seats } = browser();
  seats.hold(DEN, "Tuesday", "a");
  seats.hold(DEN, "Tuesday", "b");
  seats.leave(DEN, "a");
  expect(seats.of(DEN)?.is_open).toBe(true);
  seats.leave(DEN, "b");
  expect(seats.of(DEN)?.is_open).toBe(false);
});

test("a session that was left is forgotten, others are not", () => {
  const { seats, clock, kept } = browser();
  seats.hold(DEN, "Tuesday", "a");
  clock.ms += 10;
  seats.hold(CLUB, "Chess", "b");
  expect(seats.all().map(({ name }) => name)).toEqual(["Chess", "Tuesday"]);
  seats.forget(CLUB);
  expect(seats.all().map(({ name }) => name)).toEqual(["Tuesday"]);
  clock.ms += 60_000;
  seats.all();
  expect(kept.size).toBe(0);
});

test("what is no entry, and one from the future, is none", () => {
  const { seats, kept, clock } = browser();
  kept.set(`sametick.seat.${DEN}`, "{");
  kept.set(`sametick.seat.${CLUB}`, JSON.stringify({ name: "x", page: "a", seen_at_ms: clock.ms + 1, is_left: true }));
  kept.set("sametick.name", "Ada");
  expect(seats.all()).toEqual([]);
  expect([...kept.keys()]).toEqual(["sametick.name"]);
});
