import { expect, test } from "vitest";
import type { Person, View } from "../lobby/protocol";
import { noticeOf, listed, nextText, seatText, startText, winnersText } from "./words";

const [ADA, BOB] = ["01", "02"];

function view(people: Partial<Person>[], more: Partial<View> = {}): View {
  return {
    session: "4d",
    plan: { groups: [{ name: "Sides", seats: ["left", "right"] }, { name: "Ends", seats: ["top", "bottom"] }] },
    settings: { name: "T", game: "pong", mode: "lockstep", scenario: null, difficulty: 1, groups: 2, listed: true },
    locked: false,
    phase: "lobby",
    round: 0,
    results: null,
    creator: ADA,
    groups: [],
    people: people.map((person, at) => ({ player: [ADA, BOB][at] ?? "", name: ["Ada", "Bob"][at] ?? "", seat: null, ready: false, away: false, ...person })),
    ...more,
  };
}

const next = (seen: View, at = 0) => nextText(seen, seen.people[at] ?? null);

test("everybody is told what comes next", () => {
  expect(next(view([{}]))).toBe("Choose a seat.");
  expect(next(view([{ seat: 0 }]))).toBe("Say when you are ready.");
  expect(next(view([{ seat: 0, ready: true }]))).toBe("All set. Start when you like.");
  const both = view([{ seat: 0, ready: true }, { seat: 2 }]);
  expect(next(both)).toBe("Nobody is ready in Ends yet.");
  expect(next(view([{ seat: 0 }, { seat: 1, ready: true }]), 1)).toBe("Ready. Waiting for the start.");
  expect(startText(view([{}]))).toBe("Nobody has a seat yet.");
});

test("a seat is called by its group where there are several", () => {
  const seen = view([{}]);
  expect([seatText(seen, 3), seatText(seen, null)]).toEqual(["Ends, bottom", "no seat"]);
  expect(seatText({ ...seen, settings: { ...seen.settings, groups: 1 } }, 0)).toBe("left");
});

test("winners are told by name, and oneself as oneself", () => {
  const scores = [{ seat: 0, points: 11, won: true }, { seat: 1, points: 3, won: false }];
  const seen = view([{ seat: 0 }, { seat: 1 }], { results: JSON.stringify({ scores }) });
  const nameOf = (seat: number) => ["Ada", "Bob"][seat] ?? "";
  expect(winnersText(seen, seen.people[0] ?? null, nameOf)).toBe("You win");
  expect(winnersText(seen, seen.people[1] ?? null, nameOf)).toBe("Ada wins");
  expect(winnersText({ ...seen, results: null }, null, nameOf)).toBe("The game is over");
  expect(listed(["a", "b", "c"])).toBe("a, b and c");
});

test("a disconnected member sees how long the seat is kept", () => {
  const away = { at: "away" as const, suspended: false, until_ms: 60_000, retry_at_ms: null };
  expect(noticeOf(away, true, 8_200)).toMatchObject({ countdown_s: 52, title: "Connection lost" });
  // Whatever the clock says: a seat waits for a minute, and not for longer.
  expect(noticeOf(away, true, -37_000)).toMatchObject({ countdown_s: 60 });
  expect(noticeOf({ ...away, suspended: true, retry_at_ms: 10_000 }, true, 8_200)).toMatchObject({ countdown_s: 2 });
  expect(noticeOf({ at: "entering" }, true, 0)).toMatchObject({ name: "entering", title: "On the way" });
  expect(noticeOf({ at: "in" }, true, 0)).toBeNull();
});
