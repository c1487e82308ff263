import { expect, test } from "vitest";
import type { SessionInfo } from "./api";
import { bestToJoin, freeSeats, lasting } from "./sessions";

const session = (name: string, seats: number, players: number, more: Partial<SessionInfo> = {}): SessionInfo => ({
  name,
  game: "pong",
  build: "b",
  mode: "lockstep",
  tick: 0,
  seconds: 10,
  seats,
  players: Array.from({ length: players }, (_, seat) => ({ seat, name: "x" })),
  watchers: 0,
  ...more,
});

const wanted = (seats: number) => ({ game: "pong", build: "b", mode: "lockstep" as const, seats });

test("the fullest session with a free seat is joined", () => {
  const sessions = [
    session("full", 4, 4),
    session("empty", 4, 0),
    session("old", 4, 3, { seconds: 500 }),
    session("young", 4, 3),
  ];
  expect(bestToJoin(sessions, wanted(4))?.name).toBe("young");
});

test("sessions of another build, game, mode or size are left alone", () => {
  const sessions = [
    session("other", 2, 1, { build: "c" }),
    session("chess", 2, 1, { game: "chess" }),
    session("room", 2, 1, { mode: "room" }),
    session("4", 4, 1),
  ];
  expect(bestToJoin(sessions, wanted(2))).toBeNull();
});

test("a session with more players than seats has none free", () => {
  expect(freeSeats(session("odd", 2, 3))).toBe(0);
});

test("times are short", () => {
  expect([0, 59.9, 60, 3599, 3600, 172_800].map(lasting)).toEqual(["0 s", "59 s", "1 min", "59 min", "1 h", "2 days"]);
});
