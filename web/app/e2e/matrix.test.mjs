// Plays every game to its end, in every mode and by every way to join: the table, and the steps of each entry.

import assert from "node:assert/strict";
import { Fighter } from "./fighter.mjs";
import { Member, own } from "./member.mjs";
import { points, scores } from "./player.mjs";
import { story } from "./story.mjs";
import { until } from "./until.mjs";

/** The ways to join of the first and the second player. A `link` leads to a session without a lobby; `quick` is the button on the first page, which finds
 * that session; `lobby` makes a session there, to which `list` and `invitation` lead. */
const TABLE = [
  { game: "pong", mode: "lockstep", ways: ["link", "quick"] },
  { game: "arena", mode: "lockstep", ways: ["link", "quick"] },
  { game: "arena", mode: "room", ways: ["link", "quick"] },
  { game: "pong", mode: "lockstep", ways: ["lobby", "list"] },
  { game: "arena", mode: "lockstep", ways: ["lobby", "invitation"] },
  { game: "arena", mode: "room", ways: ["lobby", "list"] },
];

/** What is over soonest, how many points that takes, and how it is played. */
const GAMES = {
  pong: { scenario: "short", points: 5, plays: playPong },
  arena: { scenario: "field", points: 3, plays: playArena },
};

story("the table has every game and every mode that a server offers", async (stage) => {
  const server = await stage.server();
  const { games } = await (await fetch(`${server.address}/api/server`)).json();
  const offered = games.flatMap(({ name, modes }) => modes.flatMap((mode) => ["link,quick", "lobby"].map((way) => `${name} ${mode} ${way}`)));
  const told = TABLE.map(({ game, mode, ways }) => `${game} ${mode} ${ways[0] === "lobby" ? "lobby" : ways}`);
  assert.deepEqual(told.sort(), offered.sort());
});

for (const { game, mode, ways } of TABLE) {
  const tell = ways[0] === "lobby" ? gather : meet;
  story(`${game} in ${mode === "room" ? "a room" : "lockstep"}, by ${ways.join(" and ")}, is played to its end`, (stage) => tell(stage, game, mode, ways[1]));
}

/** The first player joins by a link that begins a session, the second by the button that finds it. */
async function meet(stage, game, mode) {
  const server = await stage.server();
  const { scenario, points: enough, plays } = GAMES[game];
  const ada = await stage.player("ada", `${server.address}/play/${game}/den?mode=${mode}&bots=no&listed&scenario=${scenario}&seed=7`);
  await ada.sees("itself in the session", ({ status }) => ["playing", "waiting"].includes(status?.state));
  const bob = await stage.player("bob", `${server.address}/`);
  const card = bob.element(`game-${game}`);
  if (game === "arena") await card.getByTestId(`mode-${mode}`).check({ force: true });
  await card.getByText("is waiting for you").waitFor();
  await card.getByTestId("play-now").click();
  await Promise.all([ada.plays(), bob.plays()]);
  assert.match(bob.page.url(), /\/den(\?|$)/, "the button has found the session");

  const ended = await plays(ada, bob, ({ hud }) => (game === "pong" ? hud?.phase === "over" : hud?.winner != null));
  const most = Math.max(...standings(ended.hud));
  assert.equal(most, enough);
  await until("both see the same end", async () => {
    const [{ hud: one }, { hud: other }] = await Promise.all([ada.look(), bob.look()]);
    return one.winner === other.winner && String(standings(one)) === String(standings(other));
  });
  const sign = game === "pong" ? "prompt" : "won";
  await Promise.all([ada.element(sign).getByText(/win|won/).waitFor(), bob.element(sign).getByText(/win|won/).waitFor()]);
  if (mode === "lockstep") await Promise.all([ada, bob].map(async (player) => player.agrees(await player.look())));
}

/** The first player creates a session in the lobby, the second finds it there or has its link. */
async function gather(stage, game, mode, way) {
  const server = await stage.server();
  const { scenario, points: enough, plays } = GAMES[game];
  const ada = new Member(await stage.player("ada", `${server.address}/lobby`));
  const modes = game === "arena" ? [`mode-${mode}`] : [];
  await ada.creates({ difficulty: 1, choose: [`game-${game}`, ...modes, `scenario-${scenario}`] });
  const link = await ada.gathers();
  const bob = new Member(await stage.player("bob", way === "list" ? `${server.address}/lobby` : link));
  if (way === "list") await bob.element("join").click();
  else await bob.joins();
  await bob.gathers();
  for (const [seat, member] of [ada, bob].entries()) await member.sits(seat);
  await ada.isReady();
  await bob.isReady();
  await ada.element("start").click();
  await Promise.all([ada.player.plays(), bob.player.plays()]);

  await plays(ada.player, bob.player, ({ session }) => session?.view?.phase === "results");
  await Promise.all([ada.element("results").waitFor(), bob.element("results").waitFor()]);
  const results = await Promise.all([ada, bob].map(async ({ player }) => (await player.look()).session.view.results));
  assert.equal(results[0], results[1]);
  const { scores } = JSON.parse(results[0]);
  assert.deepEqual(scores.filter(({ won }) => won).map(({ points }) => points), [enough]);
  assert.equal(await ada.element("score-row").count(), 2);
  if (game === "pong") await playAgain(ada, bob);
}

/** A rematch has all members on their seats, and begins when one is ready. */
async function playAgain(ada, bob) {
  await bob.element("waits").waitFor();
  await ada.element("rematch").click();
  await bob.gathers();
  const again = await bob.isIn("lobby");
  assert.deepEqual([own(again.session).seat, own(again.session).ready], [1, false]);
  await ada.isReady();
  await ada.element("start").click();
  const { session } = await bob.isIn("running");
  assert.equal(session.view.round, 2);
  await Promise.all([ada.player.plays(), bob.player.plays()]);
}

/** Both serve when asked to. One player stays in a corner and lets balls pass, so that the other gets nearly all points. */
async function playPong(ada, bob, is_over) {
  await bob.page.keyboard.down("ArrowUp");
  const serves = (player) =>
    until(`${player.name}'s game ends`, async () => {
      const seen = await player.look();
      if (is_over(seen)) return seen;
      if (["waiting", "serving"].includes(seen.hud?.phase)) await player.page.keyboard.press("Space");
      return false;
    }, { timeout_ms: 120_000 });
  return (await Promise.all([serves(ada), serves(bob)]))[0];
}

/** One player hunts the other, who walks towards them. */
async function playArena(ada, bob, is_over) {
  const ended = async (player) => is_over(await player.look());
  const prey = new Fighter(bob);
  const comes = until("bob's game ends", async () => (await ended(bob)) || (await prey.stepToTheMiddle(), false), { timeout_ms: 120_000 });
  const [, seen] = await Promise.all([comes, new Fighter(ada).hunts("that the game is over", (scene) => is_over({ ...scene, session: { view: { phase: scene.phase } } }))]);
  return seen;
}

/** The points of all players, in the order of seats. */
function standings(hud) {
  if (hud.game === "pong") return points(hud) > 0 ? scores(hud).split(":").map(Number) : [0];
  return [...hud.players].sort((one, other) => one.seat - other.seat).map(({ score }) => score);
}
