import { expect, test } from "vitest";
import type { ShownStatus } from "../worker/messages";
import { broughtText, keptText, lightOf, noticeOf, sentence } from "./words";

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
  spectators: 0,
  pace: 100,
  restarts: 0,
  brought: null,
  ...more,
});

test("nothing stands before a game that runs", () => {
  expect(noticeOf(status({}), true, 0)).toBeNull();
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

test("reasons become sentences", () => {
  expect(sentence("the server cannot be reached")).toBe("The server cannot be reached.");
  expect(sentence("Done!")).toBe("Done!");
});

test("the light is red only when there is no connection", () => {
  expect(lightOf(status({}), null)).toEqual({ colour: "good", text: "WebSocket" });
  expect(lightOf(status({ state: "catching-up" }), null).colour).toBe("warn");
  expect(lightOf(status({ state: "lost" }), null).colour).toBe("bad");
});

test("a player of another page is offered to play here", () => {
  const notice = noticeOf(status({ state: "refused", why: "you have come back over another connection" }), true, 0);
  expect(notice).toMatchObject({ name: "elsewhere", ways: ["here", "home"] });
});

test("a player who has to sign in is told where", () => {
  const notice = noticeOf(status({ state: "refused", why: "sign in first: only those with a token play here" }), false, 0);
  expect(notice).toMatchObject({ name: "sign-in", title: "Sign in first" });
  expect(notice?.text).toMatch(/no login form of its own/);
});

test("what becomes of a copy is said", () => {
  const brought = { taken: true, ours: 900, theirs: 900, is_same: true };
  expect(broughtText(brought)).toContain("goes on from your copy, after tick 900");
  const older = broughtText({ ...brought, taken: false, theirs: 1_000 });
  expect(older).toBe("Your copy of tick 900 was not needed: the server has the session up to tick 1000.");
  expect(broughtText({ ...brought, taken: false, theirs: 800 })).toContain("though it is newer");
  expect(broughtText({ ...brought, taken: false, is_same: false })).toContain("another session of this name");
  expect(keptText(null, "there is nothing to keep yet")).toBe("No copy was kept: there is nothing to keep yet.");
});
