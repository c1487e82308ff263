import { expect, test } from "vitest";
import { addressOf, gatheringAddress, keyInFragment, placeOf, tokenInFragment, usualOptions } from "./place";

const at = (address: string) => {
  const { pathname, search } = new URL(address, "http://host");
  return placeOf({ pathname, search });
};

test("every address leads somewhere", () => {
  expect(at("/")).toEqual({ page: "home" });
  expect(at("/index.html")).toEqual({ page: "home" });
  expect(at("/play/pong/amber-otter-4821")).toEqual({
    page: "game",
    game: "pong",
    session: "amber-otter-4821",
    options: usualOptions("pong"),
  });
  const id = "0000000100000001000000000000004d";
  expect(at("/lobby")).toEqual({ page: "lobby", create: false });
  expect(at("/lobby?new")).toEqual({ page: "lobby", create: true });
  expect(at(gatheringAddress(id))).toEqual({ page: "session", session: id });
  for (const address of ["/s", "/s/", "/s/4d", `/s/${id}0`, `/s/${id}/x`, "/lobby/x"]) expect(at(address)).toEqual({ page: "nowhere" });
  for (const address of ["/x", "/play", "/play/pong", "/play/pong/", "/play/pong/a/b", "/play/pong/%zz"]) {
    expect(at(address)).toEqual({ page: "nowhere" });
  }
});

test("an address says how it is meant, and is read the same way", () => {
  const bring = `${"ab".repeat(16)}/den-1800000000000`;
  const route = "websocket" as const;
  const options = { mode: "lockstep" as const, players: 3, bots: false, listed: true, scenario: "short", seed: 7, watch: true, route, bring };
  const address = addressOf("pong", "grün 4".replace(" ", "-"), options);
  expect(address).toBe(`/play/pong/gr%C3%BCn-4?players=3&bots=no&listed&scenario=short&seed=7&watch&route=websocket&bring=${encodeURIComponent(bring)}`);
  expect(at(address)).toEqual({ page: "game", game: "pong", session: "grün-4", options });
  expect(at("/play/pong/a?bring=../../etc")).toMatchObject({ options: { bring: null } });
});

test("every game has its own usual way", () => {
  expect(at("/play/arena/a")).toMatchObject({ options: { mode: "room", players: 16 } });
  expect(at("/play/arena/a?mode=lockstep&players=0")).toMatchObject({ options: { mode: "lockstep", players: 1 } });
  expect(addressOf("arena", "a", { mode: "lockstep" })).toBe("/play/arena/a?mode=lockstep");
  expect(addressOf("arena", "a", { mode: "room" })).toBe("/play/arena/a");
});

test("nonsense in a query falls back to what is usual", () => {
  expect(at("/play/pong/a?players=99&route=pigeon&mode=x")).toMatchObject({ options: { mode: "lockstep", players: 4, route: null } });
  expect(at("/play/pong/a?scenario=A%20b&seed=-1")).toMatchObject({ options: { scenario: null, seed: null } });
  expect(at("/play/pong/a?scenario=&seed=99999999999999999999")).toMatchObject({ options: { scenario: null, seed: null } });
  expect(at("/play/pong/a?seed=0")).toMatchObject({ options: { seed: 0 } });
  expect(at("/play/pong/a?players=x")).toMatchObject({ options: { players: 2 } });
});

test("a key is taken only whole", () => {
  const key = "0123456789abcdef".repeat(4);
  expect(keyInFragment(`#key=${key.toUpperCase()}`)).toBe(key);
  expect(keyInFragment(`#key=${key}0`)).toBeNull();
  expect(keyInFragment("#key=")).toBeNull();
});

test("a token is taken only whole, also beside a key", () => {
  const [token, key] = ["0123456789abcdef".repeat(2), "0123456789abcdef".repeat(4)];
  expect(tokenInFragment(`#token=${token.toUpperCase()}`)).toBe(token);
  expect(tokenInFragment(`#key=${key}&token=${token}`)).toBe(token);
  expect(keyInFragment(`#key=${key}&token=${token}`)).toBe(key);
  for (const other of ["", "#", `#token=${token}0`, `#token=${"x".repeat(32)}`, "#token=", `#key=${key}`]) {
    expect(tokenInFragment(other)).toBeNull();
  }
});
