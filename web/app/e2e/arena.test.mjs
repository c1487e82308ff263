// Pages and native bots in an arena: in a room, and in lockstep.

import assert from "node:assert/strict";
import { Fighter, KIND, PRACTICE } from "./fighter.mjs";
import { PHONE, story } from "./story.mjs";
import { Thumbs } from "./thumbs.mjs";

const arena = (server, more = "") => `${server.address}/play/arena/den?${PRACTICE}${more}`;

async function enters(stage, name, address, look) {
  const player = await stage.player(name, address, look);
  const fighter = new Fighter(player);
  return { player, fighter, ...(await fighter.lives()) };
}

/** The shapes of a kind that the player on this seat has. */
const of = (seat, ...kinds) => ({ shapes }) => shapes.some(({ kind, tint }) => tint === seat && kinds.includes(kind));

for (const route of ["websocket", "webtransport"]) {
  story(`a page walks and shoots among native bots in a room over ${route}`, async (stage) => {
    const server = await stage.server();
    const { player: ada, fighter, seat } = await enters(stage, "ada", arena(server, `&route=${route}`));
    const bots = server.command("bot", "arena", "--connect", await server.quic(), "--room", "den", "--count", 2, "--seconds", 6, "--json");
    await ada.sees("two others", ({ hud }) => hud.players.length === 3 && hud.players.every(({ name }) => name));
    await fighter.finds("their avatars", ({ shapes }) => shapes.filter(({ kind }) => kind === KIND.avatar).length > 1);

    await fighter.walkSome();
    await fighter.aim();
    await ada.page.mouse.down();
    await fighter.finds("its shot", of(seat, KIND.projectile));
    await ada.page.mouse.up();

    await ada.page.keyboard.press("n");
    await ada.page.keyboard.press("g");
    const { diagnostics, status } = await ada.sees("figures", ({ diagnostics }) => diagnostics?.room?.snapshot_bytes > 0);
    assert.equal(status.route, route);
    assert.ok(diagnostics.room.delay_ms >= 100, `a delay of ${diagnostics.room.delay_ms} ms`);
    await ada.element("readings").getByText("interpolation buffer").waitFor();
    await fighter.finds("ghosts", ({ ghost }) => ghost?.some(({ kind, tint }) => kind === KIND.avatar && tint === seat));
    await bots;
  });
}

story("what one page plans and builds is seen by another", async (stage) => {
  const server = await stage.server();
  const ada = await enters(stage, "ada", arena(server));
  const bob = await enters(stage, "bob", arena(server));
  // Previews are sent only to players near by.
  await Promise.all([ada.fighter.walkToTheMiddle(4), bob.fighter.walkToTheMiddle(6)]);
  await bob.fighter.finds("ada", of(ada.seat, KIND.avatar));
  await ada.player.page.keyboard.press("b");
  const tile = await ada.fighter.freeTile();
  await ada.fighter.plans(tile, bob.fighter);
  await ada.player.page.mouse.down();
  await ada.player.page.mouse.up();
  const built = ({ shapes }) => shapes.some(({ kind, x, y }) => kind === KIND.wall && x === tile.x && y === tile.y);
  await Promise.all([ada.fighter.finds("the wall", built), bob.fighter.finds("the wall", built)]);
  await ada.player.sees("what it has built", ({ hud }) => hud.builds.used === 1);

  await ada.player.page.keyboard.press("3");
  await ada.player.page.mouse.down();
  await ada.player.page.mouse.up();
  await bob.fighter.finds("nothing there", (scene) => !built(scene));
});

story("who drops out of a room has its seat again", async (stage) => {
  const server = await stage.server();
  const { player: ada, fighter, seat } = await enters(stage, "ada", arena(server));
  await ada.page.keyboard.press("n");
  await ada.element("drop").click();
  await ada.sees("that it is cut off", ({ status }) => status.state === "lost");
  await fighter.lives();
  assert.equal((await ada.look()).status.seat, seat);
  assert.ok((await ada.look()).diagnostics.reconnects > 0);
});

story("two thumbs walk, shoot and build on a phone", async (stage) => {
  const server = await stage.server();
  const look = { viewport: PHONE, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
  const { player: ada, fighter, own, seat, hud } = await enters(stage, "ada", arena(server), look);
  const thumbs = await Thumbs.on(ada.page);
  const right = own.x < hud.size / 2;
  await thumbs.put(1, { x: 90, y: 640 });
  await thumbs.put(1, { x: right ? 140 : 40, y: 640 });
  await fighter.finds("that it walks", (scene) => scene.own && (right ? scene.own.x > own.x + 1 : scene.own.x < own.x - 1));
  await thumbs.put(2, { x: 300, y: 640 });
  await thumbs.put(2, { x: 300, y: 590 });
  const { shapes } = await fighter.finds("its shot", of(seat, KIND.projectile));
  const shot = shapes.find(({ kind }) => kind === KIND.projectile);
  assert.ok(Math.sin(shot.angle) < -0.9, `it flies up, not ${shot.angle}`);
  await thumbs.lift(1);
  await thumbs.lift(2);

  // Once nothing moves under it any more, a thumb does not miss.
  await fighter.rests();
  await ada.element("tool-crate").tap();
  const tile = await fighter.freeTile();
  const at = await ada.page.evaluate(({ x, y }) => window.sametick.onPage(x, y), tile);
  await ada.page.touchscreen.tap(at.x, at.y);
  await fighter.finds("a crate", of(seat, KIND.crate));
});

story("the same arena is played in lockstep", async (stage) => {
  const server = await stage.server();
  const ada = await enters(stage, "ada", arena(server, "&mode=lockstep"));
  const bob = await enters(stage, "bob", arena(server, "&mode=lockstep"));
  const before = await ada.player.look();
  const { own } = await ada.fighter.walkSome();
  await bob.fighter.finds("ada where it went", ({ shapes }) => {
    const seen = shapes.find(({ kind, tint }) => kind === KIND.avatar && tint === ada.seat);
    return seen && Math.hypot(seen.x - own.x, seen.y - own.y) < 1;
  });
  await ada.fighter.aim();
  await ada.player.page.keyboard.down("Space");
  await bob.fighter.finds("ada's shot", of(ada.seat, KIND.projectile));
  await ada.player.page.keyboard.up("Space");
  await Promise.all([ada.player.agrees(before), bob.player.agrees(before)]);
});

story("a quick room has a goal, and goes from round to round", async (stage) => {
  const server = await stage.server();
  // On a map for one player six bots soon have the points.
  const { player: ada, fighter } = await enters(stage, "ada", `${server.address}/play/arena/den?players=1`);
  await ada.element("goal").getByText("First to 10").waitFor();
  await fighter.finds("who has won", ({ hud }) => hud.winner !== null, { timeout_ms: 240_000 });
  await ada.element("next-round").getByText("Round 2 begins in").waitFor();
  await ada.element("round-countdown").waitFor();
  const { own: from } = await fighter.finds("that nobody has points", ({ hud, own }) => own && hud.round === 2 && hud.players.every(({ score }) => score === 0));
  await fighter.hold(["d", "s"]);
  const { own } = await fighter.finds("the beginning of the round", ({ hud, own }) => hud.wait === 0 && own);
  assert.ok(Math.hypot(own.x - from.x, own.y - from.y) < 2, "nobody walks before a round begins");
  await fighter.hold([]);
});

story("one click leads into an arena, and a link to the same one", async (stage) => {
  const server = await stage.server();
  const ada = await stage.player("ada", `${server.address}/`);
  await ada.element("game-arena").getByTestId("play-now").click();
  await new Fighter(ada).lives();
  const bob = await stage.player("bob", `${server.address}/`);
  const row = bob.element("sessions").locator("li");
  await row.getByText("Arena, room").waitFor();
  await row.getByTestId("join").click();
  const { hud } = await new Fighter(bob).lives();
  assert.equal(hud.mode, "room");
  await ada.sees("bob", ({ hud }) => hud.players.filter(({ bot }) => !bot).length === 2);
});
