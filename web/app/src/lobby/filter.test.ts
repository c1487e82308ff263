import { expect, test } from "vitest";
import { sizesOf, tidied, usualSettings } from "./draft";
import { countOf, EVERYTHING, filterOf, isNear, sorted } from "./filter";
import type { Summary } from "./protocol";
import type { GameInfo } from "../api";

const PONG: GameInfo = {
  name: "pong",
  build: "b",
  ticks_per_second: 60,
  seats: [2, 4],
  modes: ["lockstep"],
  session: { groups: [{ name: "Sides", seats: ["left", "right"] }, { name: "Ends", seats: ["top", "bottom"] }], scenarios: ["classic", "short"] },
};

test("what was not chosen is not asked for", () => {
  expect(filterOf(EVERYTHING)).toEqual({});
  const chosen = { game: "pong", mode: "room" as const, players: 2, open: true, locked: false, ping_ms: 60 };
  expect(filterOf(chosen)).toEqual({ game: "pong", mode: "room", players: 2, open: true, locked: false });
  expect([countOf(EVERYTHING), countOf(chosen)]).toEqual([0, 6]);
});

test("only what is known to be far away is left out", () => {
  expect([isNear(50, 60), isNear(70, 60), isNear(null, 60), isNear(70, null)]).toEqual([true, false, true, true]);
});

test("sessions in the lobby phase come first, deserted ones last", () => {
  const summary = (session: string, phase: Summary["phase"], players: number): Summary => ({
    session, phase, players, seats: 2, locked: false, settings: usualSettings(PONG, session),
  });
  const list = [summary("left", "running", 0), summary("full", "lobby", 2), summary("plays", "running", 1), summary("empty", "lobby", 0), summary("one", "lobby", 1)];
  expect(sorted(list).map(({ session }) => session)).toEqual(["one", "empty", "plays", "full", "left"]);
});

test("a new session has the game's defaults and a valid name", () => {
  const settings = usualSettings(PONG, "Amber Otter");
  expect(settings).toMatchObject({ game: "pong", mode: "lockstep", scenario: "classic", groups: 1, listed: true });
  expect(tidied({ ...settings, name: "  a  b " }, "x").name).toBe("a b");
  expect(tidied({ ...settings, name: "   " }, "Amber Otter").name).toBe("Amber Otter");
  expect(sizesOf(PONG)).toEqual([{ groups: 1, seats: 2, names: "Sides" }, { groups: 2, seats: 4, names: "Sides, Ends" }]);
});
