import { expect, test } from "vitest";
import type { Answer, Join, View, Welcome } from "./protocol";
import { Stay, type Kept, type StaySeen } from "./stay";
import { TestWorld } from "./testworld";

const SESSION = "0000000100000001000000000000004d";
const GO = { session: SESSION, address: ":8081", ticket: "2030" };
const ADA = "00000000000000000000000000000001";

const VIEW: View = {
  session: SESSION,
  plan: { groups: [{ name: "Sides", seats: ["left", "right"] }] },
  settings: { name: "Tuesday", game: "pong", mode: "lockstep", scenario: null, difficulty: 1, groups: 1, listed: true },
  locked: false,
  phase: "lobby",
  round: 0,
  results: null,
  creator: ADA,
  groups: [],
  people: [{ player: ADA, name: "Ada", seat: null, ready: false, away: false }],
};

const WELCOME: Welcome = { you: ADA, resumeToken: "t1", view: VIEW };
const KEPT: Kept = { player: ADA, token: "t0", address: ":8081", name: "Tuesday" };

class Visitor {
  readonly world = new TestWorld();
  readonly kept = new Map<string, Kept>();
  readonly joins: Join[] = [];
  readonly moves: string[] = [];
  answer: Answer = { go: GO };
  readonly stay: Stay;

  constructor(protocol: "http:" | "https:" = "http:") {
    this.stay = new Stay(SESSION, {
      world: this.world,
      page: { protocol, hostname: "here", host: "here:8080" },
      memory: {
        read: (session) => this.kept.get(session) ?? null,
        write: (session, kept) => void (kept ? this.kept.set(session, kept) : this.kept.delete(session)),
      },
      query: () => Promise.resolve("?proof=x"),
      join: (join) => {
        this.joins.push(join);
        return Promise.resolve(this.answer);
      },
      changed: () => {},
      moved: (session) => void this.moves.push(session),
    });
  }

  get seen(): StaySeen {
    return this.stay.seen;
  }

  get socket() {
    return this.world.newest;
  }

  /** The newest socket opens. */
  async opens() {
    await this.world.settle();
    this.socket.onopen?.();
  }

  async isIn(welcome = WELCOME) {
    await this.opens();
    this.socket.tell({ kind: "event", event: { welcome } });
    expect(this.seen.state).toEqual({ at: "in" });
  }
}

test("with a ticket one is in, and what brings one back is kept", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", GO);
  await ada.isIn();
  expect(ada.socket.address).toBe("ws://here:8081/api/session/ws?proof=x");
  expect(ada.socket.last).toMatchObject({ action: "arrive", payload: { ticket: "2030" } });
  expect(ada.kept.get(SESSION)).toEqual({ player: ADA, token: "t1", address: ":8081", name: "Tuesday" });
});

test("a page that was loaded anew comes back by itself", async () => {
  const ada = new Visitor();
  ada.kept.set(SESSION, KEPT);
  ada.stay.begin("Ada", null);
  await ada.isIn();
  expect(ada.socket.last).toMatchObject({ action: "resume", payload: { session: SESSION, player: ADA, token: "t0" } });
  expect(ada.joins).toEqual([]);
});

test("a new player gets the form, with the reason of a refusal", async () => {
  const bob = new Visitor();
  bob.stay.begin("Bob", null);
  expect(bob.seen.state).toEqual({ at: "door", refused: null });
  bob.answer = { refused: "not_found" };
  await bob.stay.join("Bob", "wrong");
  expect(bob.joins).toEqual([{ session: SESSION, name: "Bob", password: "wrong", seat: null }]);
  expect(bob.seen.state).toEqual({ at: "door", refused: "not_found" });
  bob.answer = { go: GO };
  await bob.stay.join("Bob", "right");
  await bob.isIn();
});

test("a member joins without the password, a former one needs it", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", null);
  await ada.stay.joinAsMember("Ada");
  expect(ada.joins).toEqual([{ session: SESSION, name: "Ada", password: null, seat: null }]);
  await ada.isIn();
  const bob = new Visitor();
  bob.stay.begin("Bob", null);
  bob.answer = { refused: "not_found" };
  await bob.stay.joinAsMember("Bob");
  expect(bob.seen.state).toEqual({ at: "door", refused: null });
  bob.answer = { refused: "full" };
  await bob.stay.joinAsMember("Bob");
  expect(bob.seen.state).toEqual({ at: "door", refused: "full" });
});

test("requests are answered, and not made while one is cut off", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", GO);
  await ada.isIn();
  const taken = ada.stay.request("take", { seat: 1 });
  expect(ada.socket.last).toMatchObject({ action: "take", payload: { seat: 1 } });
  ada.socket.tell({ kind: "error", code: "seat_taken", seq: ada.socket.last?.seq });
  expect(await taken).toBe("seat_taken");
  const stood = ada.stay.request("stand", {});
  ada.socket.tell({ kind: "ack", seq: ada.socket.last?.seq });
  expect(await stood).toBeNull();
  ada.socket.onclose?.();
  expect(await ada.stay.request("stand", {})).toBe("cut");
});

test("a disconnected member returns with the newest token", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", GO);
  await ada.isIn();
  for (const token of ["t1", "t2"]) {
    const before = ada.socket;
    before.onclose?.();
    expect(ada.seen.state).toMatchObject({ at: "away", suspended: false, until_ms: ada.world.now_ms() + 60_000 });
    expect(ada.seen.view).not.toBeNull();
    await ada.world.settle(10);
    expect(ada.socket).not.toBe(before);
    await ada.isIn({ ...WELCOME, resumeToken: "t2" });
    expect(ada.socket.last).toMatchObject({ action: "resume", payload: { token } });
  }
});

test("the gateway is asked for a host that cannot be reached", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", GO);
  await ada.isIn();
  ada.answer = { go: { ...GO, address: ":8099", ticket: "4050" } };
  ada.socket.onclose?.();
  for (let failures = 0; failures < 2; failures++) {
    await ada.world.settle(1_100);
    ada.socket.onclose?.();
  }
  await ada.world.settle(1_100);
  expect(ada.joins.length).toBe(1);
  await ada.isIn();
  expect(ada.socket.address).toContain("here:8099");
  expect(ada.socket.last).toMatchObject({ action: "arrive", payload: { ticket: "4050" } });
});

test("reconnecting stops after a minute, until the player retries", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", GO);
  await ada.isIn();
  ada.answer = { refused: "unavailable" };
  ada.socket.onclose?.();
  await ada.world.settle(59_000);
  expect(ada.seen.state.at).toBe("away");
  await ada.world.settle(8_000);
  expect(ada.seen.state).toEqual({ at: "out", why: "lost" });
  ada.stay.retry();
  await ada.world.settle(10);
  await ada.isIn();
});

test("each last word has its own end", async () => {
  const ends = [
    ["came_back", "elsewhere"],
    ["bad_token", "released"],
    ["kicked", "kicked"],
    ["banned", "banned"],
    ["left", "left"],
    [{ over: "idle" }, "idle"],
    [{ over: "quarantined" }, "quarantined"],
  ] as const;
  for (const [closing, why] of ends) {
    const ada = new Visitor();
    ada.stay.begin("Ada", GO);
    await ada.isIn();
    ada.socket.tell({ kind: "closing", closing });
    ada.socket.onclose?.();
    await ada.world.settle(10_000);
    expect(ada.seen.state).toEqual({ at: "out", why });
    expect(ada.kept.size).toBe(0);
    expect(ada.world.sockets.length).toBe(1);
  }
});

test("a kicked member needs the password again", async () => {
  const locked = { ...WELCOME, view: { ...VIEW, locked: true } };
  for (const [closing, joins] of [["kicked", 0], ["came_back", 1]] as const) {
    const bob = new Visitor();
    bob.kept.set(SESSION, KEPT);
    bob.stay.begin("Bob", null);
    await bob.isIn(locked);
    bob.socket.tell({ kind: "closing", closing });
    bob.stay.again();
    expect(bob.joins.length).toBe(joins);
    expect(bob.seen.state.at).toBe(joins ? "entering" : "door");
  }
});

test("a host that restarts is waited for longer than a minute", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", GO);
  await ada.isIn();
  ada.answer = { refused: "unavailable" };
  ada.socket.tell({ kind: "closing", closing: "suspended" });
  expect(ada.seen.state).toMatchObject({ at: "away", suspended: true });
  for (let s = 0; s < 100; s++) {
    await ada.world.settle(1_000);
    ada.socket.onclose?.();
  }
  expect(ada.seen.state).toMatchObject({ at: "away", suspended: true });
  for (let s = 0; s < 20 && ada.socket.closed; s++) await ada.world.settle(1_000);
  await ada.isIn();
});

test("a session that moves is followed with or without a ticket", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", GO);
  await ada.isIn();
  const moved = { session: "58", address: "wss://other:8081", ticket: "77" };
  ada.socket.tell({ kind: "event", event: { moved } });
  await ada.isIn({ ...WELCOME, view: { ...VIEW, session: "58" } });
  expect(ada.socket.address).toContain("wss://other:8081");
  expect(ada.socket.last).toMatchObject({ action: "arrive", payload: { ticket: "77" } });
  expect([ada.moves, [...ada.kept.keys()]]).toEqual([["58"], ["58"]]);

  ada.answer = { go: { session: "59", address: ":1", ticket: "88" } };
  ada.socket.tell({ kind: "event", event: { moved: { ...moved, session: "59", ticket: null } } });
  await ada.isIn({ ...WELCOME, view: { ...VIEW, session: "59" } });
  expect(ada.joins).toMatchObject([{ session: "59", name: "Ada" }]);
});

test("a ticket that ran out is replaced once", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", GO);
  await ada.opens();
  ada.socket.tell({ kind: "closing", closing: "bad_ticket" });
  await ada.opens();
  expect(ada.joins.length).toBe(1);
  ada.socket.tell({ kind: "closing", closing: "bad_ticket" });
  await ada.world.settle(1_000);
  expect(ada.seen.state).toEqual({ at: "door", refused: "bad_ticket" });
});

test("the game's address is kept until the game is over", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", GO);
  await ada.isIn();
  const play = { game: "pong", mode: "lockstep" as const, place: "p", pass: "0", seat: 0, websocket: 1, webtransport: null, native: [] };
  ada.socket.tell({ kind: "event", event: { phase: { phase: "running", round: 1, results: null } } });
  ada.socket.tell({ kind: "event", event: { play } });
  expect(ada.seen.offer).toEqual(play);
  ada.socket.onclose?.();
  expect(ada.seen.offer).toEqual(play);
  ada.socket.tell({ kind: "event", event: { play: null } });
  expect(ada.seen.offer).toEqual(play);
  await ada.world.settle(10);
  await ada.isIn({ ...WELCOME, view: { ...VIEW, phase: "running" } });
  expect(ada.seen.offer).toEqual(play);
  ada.socket.tell({ kind: "event", event: { play: null } });
  expect(ada.seen.offer).toBeNull();
});

test("leaving is sent, and the page does not reconnect", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", GO);
  await ada.isIn();
  ada.stay.leave();
  expect(ada.socket.last).toMatchObject({ action: "leave" });
  expect([ada.socket.closed, ada.kept.size]).toEqual([true, 0]);
  await ada.world.settle(10_000);
  expect(ada.world.sockets.length).toBe(1);
});

test("a page that is reloaded during a move follows the session", async () => {
  for (const ticket of ["77", null]) {
    const ada = new Visitor();
    ada.kept.set(SESSION, KEPT);
    ada.stay.begin("Ada", null);
    await ada.opens();
    ada.answer = { go: { session: "58", address: ":8099", ticket: "88" } };
    ada.socket.tell({ kind: "event", event: { moved: { session: "58", address: ":8099", ticket } } });
    await ada.isIn({ ...WELCOME, view: { ...VIEW, session: "58" } });
    expect(ada.socket.last).toMatchObject({ action: "arrive", payload: { ticket: ticket ?? "88" } });
    expect([ada.moves, [...ada.kept.keys()]]).toEqual([["58"], ["58"]]);
  }
});

test("a member who is away during a move keeps asking for a ticket", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", GO);
  await ada.isIn();
  ada.socket.onclose?.();
  const { state: before } = ada.seen;
  await ada.world.settle(10);
  await ada.opens();
  ada.answer = { refused: "unavailable" };
  ada.socket.tell({ kind: "event", event: { moved: { session: "58", address: ":8099", ticket: null } } });
  await ada.world.settle(2_000);
  expect(ada.joins.length).toBeGreaterThan(1);
  expect(ada.seen.state).toMatchObject({ at: "away", until_ms: before.at === "away" && before.until_ms });
  expect(ada.seen.view).not.toBeNull();
  ada.answer = { go: { session: "58", address: ":8099", ticket: "88" } };
  await ada.world.settle(5_000);
  await ada.isIn({ ...WELCOME, view: { ...VIEW, session: "58" } });
});

test("a former member sees nothing of the session", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", GO);
  await ada.isIn({ ...WELCOME, view: { ...VIEW, locked: true } });
  ada.socket.tell({ kind: "closing", closing: "kicked" });
  ada.stay.again();
  expect(ada.seen.state).toEqual({ at: "door", refused: null });
  const joined = ada.stay.join("Ada", "open sesame");
  expect(ada.seen).toMatchObject({ state: { at: "entering" }, view: null, offer: null });
  await joined;
  await ada.isIn();
});

test("a host that stops for a long time is not asked all the time", async () => {
  const ada = new Visitor();
  ada.stay.begin("Ada", GO);
  await ada.isIn();
  ada.answer = { refused: "unavailable" };
  ada.socket.tell({ kind: "closing", closing: "suspended" });
  for (let ms = 0; ms < 60_000; ms += 10) {
    await ada.world.settle(10);
    if (ada.socket.closed) continue;
    ada.socket.onopen?.();
    ada.socket.tell({ kind: "closing", closing: "suspended" });
  }
  expect(ada.seen.state).toMatchObject({ at: "away", suspended: true });
  expect(ada.world.sockets.length).toBeLessThan(15);
});

test("a host that browsers bar differs from one that is gone", async () => {
  const ada = new Visitor("https:");
  ada.stay.begin("Ada", { ...GO, address: "ws://other.example:8081" });
  await ada.world.settle();
  expect(ada.seen.state).toEqual({ at: "out", why: "barred" });
  expect(ada.world.sockets).toEqual([]);
});
