import { expect, test } from "vitest";
import type { PongHud, SeatHud } from "../worker/messages";
import { promptOf, resultOf, saidOf, scoreText } from "./words";

const seat = (more: Partial<SeatHud>): SeatHud => ({
  seat: 0,
  wall: "left",
  score: 0,
  ready: false,
  driver: "player",
  name: "Ada",
  you: false,
  ...more,
});

const hud = (more: Partial<PongHud>): PongHud => ({
  game: "pong",
  phase: "playing",
  server: null,
  winner: null,
  points: 11,
  once: false,
  hits: 0,
  countdown: null,
  court: { w: 320, h: 240 },
  seats: [seat({ you: true, score: 3 }), seat({ seat: 1, wall: "right", driver: "bot", name: null })],
  ...more,
});

test("the game says what it waits for", () => {
  const serving = hud({ phase: "serving", server: 0 });
  expect(promptOf(serving, false)).toBe("Press space to serve");
  expect(promptOf(serving, true)).toBe("Tap to serve");
  expect(promptOf(hud({ phase: "serving", server: 1 }), false)).toBe("Bot serves");
  expect(promptOf(hud({ phase: "waiting" }), true)).toBe("Tap to begin with a bot");
  const alone = hud({ phase: "waiting", seats: [seat({ you: true }), seat({ seat: 1, driver: "nobody", name: null })] });
  expect(promptOf(alone, false)).toBe("Waiting for 1 more player");
});

test("before a serve it is counted down, for ears too", () => {
  const counting = hud({ phase: "serving", server: 1, countdown: 3 });
  expect(promptOf(counting, false)).toBe("Get ready");
  expect(promptOf({ ...counting, server: 0 }, true)).toBe("Get ready to serve");
  expect(saidOf(counting)).toBe("Get ready 3");
});

test("the end has a winner", () => {
  expect(resultOf(hud({ phase: "over", winner: 0 }))).toBe("You win");
  expect(promptOf(hud({ phase: "over", winner: 0 }), false)).toBe("Press space to play again");
  expect(promptOf(hud({ phase: "over", winner: 0, once: true }), false)).toBe("");
  expect(resultOf(hud({ phase: "over", winner: 1 }))).toBe("Bot wins");
  expect(scoreText(hud({}))).toBe("Ada (you) 3, Bot 0");
});
