import { expect, test } from "vitest";
import { closedDoor, lineText, outScreen, passwordText, pingText, refusedText } from "./words";
import type { Why } from "./stay";

/** All of `Refusal` in crates/session. */
const REFUSALS = [
  "not_found", "full", "seat_taken", "no_such_seat", "no_seat", "no_such_player", "not_now", "not_creator", "not_captain",
  "not_ready", "other_group", "banned", "too_fast", "too_many_guesses", "busy", "bad_settings", "quarantined", "over",
  "no_host", "unavailable", "lost", "stopping",
];

test("whatever a server refuses is said in a sentence", () => {
  const texts = REFUSALS.map(refusedText);
  for (const text of texts) expect(text).toMatch(/^[A-Z].*\.$/);
  expect(new Set(texts).size).toBe(REFUSALS.length);
  expect(refusedText("something_new")).toContain("something_new");
});

test("every end has a screen of its own, with a way out", () => {
  const whys: Why[] = [
    "left", "kicked", "banned", "elsewhere", "released", "lost", "barred", "unclaimed", "idle", "abandoned", "finished", "quarantined", "moved", "stopped",
  ];
  const screens = whys.map(outScreen);
  expect(new Set(screens.map(({ text }) => text)).size).toBe(whys.length);
  for (const { ways } of screens) expect(ways).toContain("lobby");
});

test("a wrong password can be typed again, other refusals are final", () => {
  for (const code of ["not_found", "too_many_guesses", "too_fast", "busy", "bad_ticket"]) expect(closedDoor(code)).toBeNull();
  for (const code of ["full", "banned", "over", "quarantined", "stopping", "unavailable", "lost"]) expect(closedDoor(code)?.name).toBe(code);
  expect(closedDoor("lost")?.ways).toContain("try");
});

test("what is too long for the server is said before it is sent", () => {
  expect([passwordText("x".repeat(64)), passwordText("ж".repeat(32))]).toEqual(["", ""]);
  for (const password of ["x".repeat(65), "ж".repeat(33), "🦦".repeat(17)]) expect(passwordText(password)).toContain("too long");
  expect([lineText("x".repeat(280)), lineText("語".repeat(200))]).toEqual(["", ""]);
  expect(lineText("語".repeat(201))).toContain("too long");
});

test("a ping has no more digits than it means", () => {
  expect([0.2, 1.4, 33.6].map(pingText)).toEqual(["<1\u00a0ms", "1\u00a0ms", "34\u00a0ms"]);
});
