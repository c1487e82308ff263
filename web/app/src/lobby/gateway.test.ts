import { expect, test, vi } from "vitest";
import { Gateway } from "./gateway";
import type { Answer, Settings, Summary } from "./protocol";
import { TestWorld } from "./testworld";

const SETTINGS: Settings = { name: "T", game: "pong", mode: "lockstep", scenario: null, difficulty: 1, groups: 1, listed: true };
const SUMMARY: Summary = { session: "4d", settings: SETTINGS, phase: "lobby", players: 1, seats: 2, locked: false };
const GO = { session: "4d", address: ":8081", ticket: "2030" };

function begun(token: string | null = null, signs_in = false) {
  const world = new TestWorld();
  const needs = { world, address: () => Promise.resolve("ws://gateway"), token, signsIn: () => signs_in, changed: () => {} };
  const gateway = new Gateway(needs);
  return { world, needs, gateway };
}

/** Connects and sends `hello`. */
async function welcome(world: TestWorld) {
  await world.settle();
  world.newest.onopen?.();
  const { last } = world.newest;
  world.newest.tell({ kind: "answer", seq: last?.seq, answer: { you: { player: "p", token: "t2" } } });
  await world.settle();
  return last;
}

test("the gateway sends `hello` first and keeps its token", async () => {
  const { world, needs, gateway } = begun("t1");
  gateway.use();
  expect(await welcome(world)).toMatchObject({ action: "hello", payload: { token: "t1" } });
  expect(needs.token).toBe("t2");
  expect(gateway.seen).toMatchObject({ at: "open" });
});

test("the list is followed, also over the next connection", async () => {
  const { world, gateway } = begun();
  gateway.use();
  gateway.follow({ game: "pong" });
  await welcome(world);
  const socket = world.newest;
  expect(socket.last).toMatchObject({ action: "list", payload: { filter: { game: "pong" }, follow: true } });
  socket.tell({ kind: "answer", seq: socket.last?.seq, answer: { sessions: { sessions: [], more: false } } });
  await world.settle();
  expect(gateway.seen.sessions).toEqual([]);
  socket.tell({ kind: "answer", answer: { sessions: { sessions: [SUMMARY], more: true } } });
  expect(gateway.seen).toMatchObject({ sessions: [SUMMARY], more: true });

  socket.onclose?.();
  expect(gateway.seen).toMatchObject({ at: "gone", sessions: [SUMMARY] });
  await world.settle(500);
  await welcome(world);
  expect(world.newest).not.toBe(socket);
  expect(world.newest.last).toMatchObject({ action: "list" });
});

test("a request that was cut off is repeated with the same key", async () => {
  const { world, gateway } = begun();
  const created = gateway.create({ name: "Ada", settings: SETTINGS, password: "x" });
  await welcome(world);
  const first = world.newest.last;
  expect(first).toMatchObject({ action: "create", payload: { name: "Ada", password: "x" } });
  expect(first?.payload.key).toMatch(/^[0-9a-f]{32}$/);
  world.newest.onclose?.();
  await world.settle(500);
  await welcome(world);
  const again = world.newest.last;
  expect(again?.payload).toEqual(first?.payload);
  world.newest.tell({ kind: "answer", seq: again?.seq, answer: { go: GO } });
  expect(await created).toEqual({ go: GO });
  expect(gateway.seen.at).toBe("closed");
});

test("a silent host is asked again with the same key, not for ever", async () => {
  const { world, gateway } = begun();
  const created = gateway.create({ name: "Ada", settings: SETTINGS, password: null });
  await welcome(world);
  const keys = new Set();
  for (let tries = 0; tries < 3; tries++) {
    keys.add(world.newest.last?.payload.key);
    world.newest.tell({ kind: "answer", seq: world.newest.last?.seq, answer: { refused: "unavailable" } });
    await world.settle(1_000);
  }
  expect(keys.size).toBe(1);
  expect(await created).toEqual({ refused: "unavailable" });
});

test("unknown answers are refused, aborted requests not repeated", async () => {
  const { world, gateway } = begun();
  const stop = new AbortController();
  const join = { session: "4d", name: "Bob", password: null, seat: null };
  const joined = gateway.join(join);
  void gateway.join({ ...join, name: "Cyd" }, stop.signal);
  stop.abort();
  await welcome(world);
  expect(world.newest.commands().map(({ payload }) => payload.name)).toEqual([undefined, "Bob"]);
  world.newest.tell({ kind: "error", code: "bad_payload", seq: world.newest.last?.seq });
  expect(await joined).toEqual({ refused: "bad_payload" });
  expect(gateway.seen.at).toBe("closed");
});

test("an aborted request for a session is not repeated", async () => {
  for (const tries of [0, 1]) {
    const { world, gateway } = begun();
    const stop = new AbortController();
    const created = vi.fn();
    void gateway.create({ name: "Ada", settings: SETTINGS, password: null }, stop.signal).then(created);
    if (tries > 0) {
      await welcome(world);
      world.newest.tell({ kind: "answer", seq: world.newest.last?.seq, answer: { refused: "unavailable" } });
      await world.settle();
    }
    stop.abort();
    expect(gateway.seen.at).toBe("closed");
    await world.settle(20_000);
    const creates = world.sockets.flatMap((socket) => socket.commands()).filter(({ action }) => action === "create");
    expect([creates.length, created.mock.calls.length]).toEqual([tries, 0]);
  }
});

test("an invalid token makes a new guest, or asks to sign in", async () => {
  for (const signs_in of [false, true]) {
    const { world, needs, gateway } = begun("bad", signs_in);
    gateway.use();
    await world.settle();
    world.newest.onopen?.();
    world.newest.tell({ kind: "error", code: "bad_token", seq: world.newest.last?.seq });
    await world.settle();
    expect([gateway.seen.at, needs.token]).toEqual(signs_in ? ["sign-in", "bad"] : ["gone", null]);
    const before = world.sockets.length;
    await world.settle(10_000);
    expect(world.sockets.length > before).toBe(!signs_in);
    needs.token = "good";
    gateway.retry();
    await welcome(world);
    expect(gateway.seen.at).toBe("open");
  }
});

test("a lost gateway is retried with growing pauses or on request", async () => {
  const { world, gateway } = begun();
  gateway.use();
  for (let failures = 0; failures < 7; failures++) {
    await world.settle(failures < 2 ? 1_000 : 8_000);
    world.newest.onclose?.();
  }
  expect(gateway.seen.at).toBe("gone");
  expect(gateway.seen.retry_at_ms - world.now_ms()).toBe(8_000);
  const before = world.sockets.length;
  gateway.retry();
  await world.settle();
  expect(world.sockets.length).toBe(before + 1);
});

test("a session's link leads to it, to none, or to no answer", async () => {
  const { world, gateway } = begun();
  gateway.use();
  await welcome(world);
  const asked = async (answer: Answer) => {
    const found = gateway.find("4d");
    await world.settle();
    expect(world.newest.last).toMatchObject({ action: "find", payload: { session: "4d" } });
    world.newest.tell({ kind: "answer", seq: world.newest.last?.seq, answer });
    return found;
  };
  expect(await asked({ sessions: { sessions: [SUMMARY], more: false } })).toEqual(SUMMARY);
  expect(await asked({ refused: "not_found" })).toBe("none");
  expect(await asked({ refused: "lost" })).toBeNull();
});

test("a new gateway is asked again before a session is missing", async () => {
  const { world, gateway } = begun();
  gateway.use();
  await welcome(world);
  const found = gateway.find("4d");
  for (let second = 0; second < 6; second++) {
    await world.settle(second && 1_000);
    world.newest.tell({ kind: "answer", seq: world.newest.last?.seq, answer: { refused: second < 5 ? "unavailable" : "not_found" } });
  }
  expect(await found).toBe("none");
});
