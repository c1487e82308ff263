import { expect, test } from "vitest";
import type { Hud, SeatHud, ShownStatus } from "../worker/messages";
import { lightOf, noticeOf, promptOf, resultOf, scoreText, sentence } from "./words";

const status = (more: Partial<ShownStatus>): ShownStatus => ({
  state: "playing",
  route: "websocket",
  attempt: 1,
  retry_at_us: null,
  retry_at_ms: null,
  silent_since_us: null,
  silent_since_ms: null,
  why: "",
  seat: 0,
  progress: 0,
  ticks_per_second: 60,
  watchers: 0,
  restarts: 0,
  ...more,
});

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

const hud = (more: Partial<Hud>): Hud => ({
  game: "pong",
  phase: "playing",
  server: null,
  winner: null,
  points: 11,
  hits: 0,
  court: { w: 320, h: 240 },
  seats: [seat({ you: true, score: 3 }), seat({ seat: 1, wall: "right", driver: "bot", name: null })],
  ...more,
});

test("nothing stands before a game that runs", () => {
  expect(noticeOf(status({}), true, 0)).toBeNull();
  expect(promptOf(hud({}), false)).toBe("");
});

test("a lost connection says why and when it is tried again", () => {
  const notice = noticeOf(status({ state: "lost", why: "the connection was closed", retry_at_ms: 2_400 }), true, 1_000);
  expect(notice).toMatchObject({
    title: "Connection lost",
    text: "The connection was closed. Trying again in 2\u00a0s. Then you have your seat again.",
    small: true,
  });
});

test("a reason that only repeats the title is left out", () => {
  const notice = noticeOf(status({ state: "lost", why: "Connection lost.", seat: null }), true, 0);
  expect(notice?.text).toBe("Trying again.");
});

test("silence is counted", () => {
  const notice = noticeOf(status({ state: "stalled", silent_since_ms: 1_000 }), true, 4_900);
  expect(notice?.title).toBe("No news for 3\u00a0s");
});

test("what to do about a refusal follows from its reason", () => {
  const ways = (why: string) => noticeOf(status({ state: "refused", why }), false, 0)?.ways;
  expect(ways("the session is full")).toContain("watch");
  expect(ways("the server runs build 12, this client build 34")).toContain("reload");
  expect(ways("the server is closing")).toContain("again");
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

test("the end has a winner", () => {
  expect(resultOf(hud({ phase: "over", winner: 0 }))).toBe("You win");
  expect(resultOf(hud({ phase: "over", winner: 1 }))).toBe("Bot wins");
  expect(scoreText(hud({}))).toBe("Ada (you) 3, Bot 0");
});

test("reasons become sentences", () => {
  expect(sentence("the server cannot be reached")).toBe("The server cannot be reached.");
  expect(sentence("Done!")).toBe("Done!");
});

test("the light is red only when there is no connection", () => {
  expect(lightOf(status({}), null)).toEqual({ colour: "good", text: "WebSocket" });
  expect(lightOf(status({ state: "catching-up" }), null).colour).toBe("warn");
  expect(lightOf(status({ state: "lost" }), null).colour).toBe("bad");
});
