import { expect, test } from "vitest";
import type { ArenaHud, PersonHud } from "../worker/messages";
import { fallText, goalText, isCounting, nameOf, ranked, saidOf, scoreText, wonText } from "./words";

const person = (seat: number, more: Partial<PersonHud> = {}): PersonHud => ({
  seat,
  name: null,
  score: 0,
  deaths: 0,
  alive: true,
  bot: seat >= 1000,
  you: false,
  character: null,
  ...more,
});

const hud = (more: Partial<ArenaHud>): ArenaHud => ({
  game: "arena",
  mode: "room",
  phase: "playing",
  health: 100,
  score: 1,
  deaths: 2,
  respawnIn: null,
  shield: null,
  builds: { used: 0, limit: 24 },
  size: 48,
  points: 0,
  winner: null,
  round: 1,
  wait: 0,
  players: [person(0, { name: "Ada", you: true }), person(3), person(1001)],
  feed: [],
  ...more,
});

test("everybody is called something", () => {
  expect([0, 3, 7, 1001].map((seat) => nameOf(hud({}), seat))).toEqual(["Ada", "Player 4", "Player 8", "Bot 2"]);
});

test("the best come first, and of equals those with fewer deaths", () => {
  const players = [person(0, { score: 1 }), person(1, { score: 3, deaths: 2 }), person(2, { score: 3 })];
  expect(ranked(players).map(({ seat }) => seat)).toEqual([2, 1, 0]);
});

test("a player who is down is told who shot them", () => {
  const feed = [
    { killer: 3, victim: 0, ago: 4 },
    { killer: 1001, victim: 0, ago: 0.5 },
    { killer: 0, victim: 3, ago: 0.1 },
  ];
  expect(fallText(hud({ feed }))).toBe("Shot by Bot 2");
  expect(saidOf(hud({ phase: "dead" }))).toBe("You are down");
  expect(saidOf(hud({}))).toBe("");
  expect(scoreText(hud({}))).toBe("1 point, 2 deaths");
});

test("the winner is named, and gets another text", () => {
  expect(wonText(hud({}))).toBe("");
  expect(wonText(hud({ winner: 0 }))).toBe("You have won");
  expect(wonText(hud({ winner: 1001 }))).toBe("Bot 2 has won");
  expect(saidOf(hud({ winner: 3, phase: "dead" }))).toBe("Player 4 has won");
});

test("a round has a goal and a countdown", () => {
  expect([goalText(hud({})), goalText(hud({ points: 10 }))]).toEqual(["", "First to 10"]);
  expect(isCounting(hud({}))).toBe(false);
  expect(isCounting(hud({ winner: 3, wait: 4 }))).toBe(false);
  expect(saidOf(hud({ round: 2, wait: 3 }))).toBe("Round 2 in 3");
});
