import { expect, test } from "vitest";
import { Chat, newestOf, unreadSince } from "./chat";
import type { Person, View } from "./protocol";
import { applied, groupOf, groupsOf, missingToStart, scoresOf, seatsOf } from "./view";

const ADA = "00000000000000000000000000000001";
const BOB = "00000000000000000000000000000002";

const person = (player: string, name: string, more: Partial<Person> = {}): Person => ({
  player,
  name,
  seat: null,
  ready: false,
  away: false,
  ...more,
});

const VIEW: View = {
  session: "0000000100000001000000000000004d",
  plan: {
    groups: [
      { name: "Sides", seats: ["left", "right"] },
      { name: "Ends", seats: ["top", "bottom"] },
    ],
  },
  settings: { name: "Tuesday", game: "pong", mode: "lockstep", scenario: null, difficulty: 1, groups: 2, listed: true },
  locked: false,
  phase: "lobby",
  round: 0,
  results: null,
  creator: ADA,
  groups: [
    { group: 0, name: "Sides", captain: null },
    { group: 1, name: "Ends", captain: null },
  ],
  people: [person(ADA, "Ada")],
};

test("events carry new values, so applying one twice is harmless", () => {
  const { settings } = VIEW;
  const events = [
    { person: person(BOB, "Bob", { seat: 1, ready: true }) },
    { group: { group: 0, name: "Artemis", captain: BOB } },
    { creator: { creator: BOB } },
    { chat: { player: BOB, name: "Bob", line: "hello" } },
    { phase: { phase: "results" as const, round: 1, results: "{}" } },
    { about: { settings: { ...settings, groups: 1 }, locked: true } },
    { left: { player: ADA, why: "left" as const } },
  ];
  const once = events.reduce(applied, VIEW);
  expect(events.flatMap((event) => [event, event]).reduce(applied, VIEW)).toEqual(once);
  expect(once).toMatchObject({ creator: BOB, phase: "results", round: 1, locked: true });
  expect(once.groups).toEqual([{ group: 0, name: "Artemis", captain: BOB }]);
  expect(once.people.map(({ name }) => name)).toEqual(["Bob"]);
  expect(applied(once, { welcome: { you: ADA, resumeToken: "", view: VIEW } })).toBe(VIEW);
  expect(applied(VIEW, { play: null })).toBe(VIEW);
});

test("people stay in the order of their ids", () => {
  const view = applied(applied({ ...VIEW, people: [] }, { person: person(BOB, "Bob") }), { person: person(ADA, "Ada") });
  expect(view.people.map(({ name }) => name)).toEqual(["Ada", "Bob"]);
});

test("seats are numbered through the groups that take part", () => {
  const view = applied(VIEW, { person: person(BOB, "Bob", { seat: 2 }) });
  const [sides, ends] = groupsOf(view);
  expect(sides?.seats.map(({ number, name }) => [number, name])).toEqual([[0, "left"], [1, "right"]]);
  expect(ends?.seats.map(({ number, sitter }) => [number, sitter?.name])).toEqual([[2, "Bob"], [3, undefined]]);
  expect([groupOf(view, 2)?.name, groupOf(view, null)]).toEqual(["Ends", null]);
  expect([seatsOf(view.plan, 1), seatsOf(view.plan, 2)]).toEqual([2, 4]);
  expect(groupsOf({ ...view, settings: { ...view.settings, groups: 1 } }).length).toBe(1);
});

test("a game can start when every group has a ready member", () => {
  expect(missingToStart(VIEW)).toEqual({ nobody: true });
  const ada = applied(VIEW, { person: person(ADA, "Ada", { seat: 0, ready: true }) });
  expect(missingToStart(ada)).toBeNull();
  const both = applied(ada, { person: person(BOB, "Bob", { seat: 3 }) });
  expect(missingToStart(both)).toMatchObject({ unready: [{ name: "Ends" }] });
  expect(missingToStart(applied(both, { person: person(BOB, "Bob", { seat: 1 }) }))).toBeNull();
});

test("scores are sorted, and nonsense is none", () => {
  const scores = [{ seat: 0, points: 3, won: false }, { seat: 1, points: 11, won: true }, { seat: 2, points: 7, won: false }];
  expect(scoresOf(JSON.stringify({ scores })).map(({ seat }) => seat)).toEqual([1, 2, 0]);
  for (const nonsense of [null, "", "x", "null", "{}", '{"scores":1}', '{"scores":[1,null,{}]}']) expect(scoresOf(nonsense)).toEqual([]);
});

test("the chat has joins and leaves, and drops old lines", () => {
  const chat = new Chat();
  let view = VIEW;
  const hear = (event: Parameters<typeof applied>[1]) => {
    chat.hear(view, event);
    view = applied(view, event);
  };
  hear({ person: person(BOB, "Bob") });
  hear({ person: person(BOB, "Bob", { seat: 1 }) });
  hear({ chat: { player: BOB, name: "Bob", line: "hello" } });
  hear({ person: person(BOB, "Bob", { away: true }) });
  hear({ left: { player: BOB, why: "released" } });
  hear({ left: { player: BOB, why: "released" } });
  expect(chat.lines.map(({ name, line, what }) => `${name}: ${line ?? what}`)).toEqual([
    "Bob: is here",
    "Bob: hello",
    "Bob: was cut off",
    "Bob: has not come back",
  ]);
  for (let i = 0; i < 300; i++) hear({ chat: { player: ADA, name: "Ada", line: String(i) } });
  expect([chat.lines.length, chat.lines.at(-1)?.line]).toEqual([200, "299"]);
  const newest = newestOf(chat.lines);
  expect([unreadSince(chat.lines, newest), unreadSince([], newestOf([]))]).toEqual([0, 0]);
  hear({ chat: { player: ADA, name: "Ada", line: "more" } });
  hear({ person: person(BOB, "Bob") });
  expect(unreadSince(chat.lines, newest)).toBe(1);
});
