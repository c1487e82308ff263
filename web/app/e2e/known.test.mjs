// A player's identity survives a reload, another tab, and a restart of the server.

import assert from "node:assert/strict";
import { Fighter, KIND, PRACTICE } from "./fighter.mjs";
import { Player } from "./player.mjs";
import { story } from "./story.mjs";

const arena = (server) => `${server.address}/play/arena/den?${PRACTICE}`;

/** The distance that an unmoved player may seem to have moved: drawn positions are interpolated. */
const SAME_PLACE = 0.3;

async function enters(stage, name, address) {
  const player = await stage.player(name, address);
  const fighter = new Fighter(player);
  return { player, fighter, ...(await fighter.lives()) };
}

const TICKS_PER_SECOND = 30;

const savedTick = ({ confirmed, room }) => (room.saved_ms === null ? -1 : confirmed - (room.saved_ms / 1000) * TICKS_PER_SECOND);

/** Walks a little, builds a wall, and waits until that is safe. */
async function settles({ player, fighter }) {
  await fighter.walkSome();
  const { tile } = await fighter.builds();
  const stale = (await player.look()).diagnostics.confirmed;
  const { diagnostics } = await player.sees("a tick after that", ({ diagnostics }) => diagnostics.confirmed > stale);
  // It looks elsewhere, which is saved, too: and with it everything before.
  await player.page.mouse.move(40, 400);
  await player.sees("that everything is saved", (seen) => savedTick(seen.diagnostics) > diagnostics.confirmed);
  return { ...(await fighter.finds("itself at rest", ({ own }) => own)), tile };
}

/** The same seat, the same place, and the same wall. */
async function isBack({ fighter }, before, options) {
  const { own, seat } = await fighter.lives(options);
  const far = Math.hypot(own.x - before.own.x, own.y - before.own.y);
  assert.equal(seat, before.seat);
  assert.ok(far < SAME_PLACE, `${far} tiles from where it was`);
  const { hud } = await fighter.finds("its wall", ({ hud, shapes }) => {
    const { x, y } = before.tile;
    return hud.builds.used === 1 && shapes.some((shape) => shape.kind === KIND.wall && shape.tint === seat && shape.x === x && shape.y === y);
  });
  return hud;
}

const character = ({ hud }, seat) => hud?.players.find((person) => person.seat === seat)?.character;

story("who reloads has its seat, its place, its walls and its character again, and others see who it is", async (stage) => {
  const server = await stage.server();
  const ada = await enters(stage, "ada", arena(server));
  const bob = await enters(stage, "bob", arena(server));
  await ada.player.page.keyboard.press("c");
  await ada.player.element("character-smith").click();
  await bob.player.sees("that ada is a smith", (seen) => character(seen, ada.seat) === "smith");
  assert.equal(character(await bob.player.look(), bob.seat), "scout");
  const before = await settles(ada);
  await ada.player.page.reload();
  await isBack(ada, before);
  await ada.player.page.locator('[data-testid="character"][data-character="smith"]').waitFor();
  await bob.player.sees("ada as a smith", (seen) => character(seen, ada.seat) === "smith");
});

story("a server that was killed and started again has everybody where they were", async (stage) => {
  const server = await stage.server();
  const ada = await enters(stage, "ada", arena(server));
  const before = await settles(ada);
  await server.kill();
  await ada.player.noticed("lost");
  await server.run();
  await isBack(ada, before);
  await ada.player.element("begun-anew").getByText("where you were").waitFor();
});

story("a second tab takes over, the first says so and waits to be asked", async (stage) => {
  const server = await stage.server();
  const ada = await enters(stage, "ada", arena(server));
  const page = await ada.player.page.context().newPage();
  const second = new Player("ada again", page).listen();
  await page.goto(arena(server));
  const there = await new Fighter(second).lives();
  assert.equal(there.seat, ada.seat);
  await ada.player.noticed("elsewhere");
  await second.goesOn(await second.look());
  await ada.player.element("way-here").click();
  await ada.fighter.lives();
  await second.noticed("elsewhere");
  const stored = await page.evaluate(() => Object.entries(localStorage).filter(([, value]) => /[0-9a-f]{32}/.test(value)).length);
  assert.equal(stored, 1, "there is one secret");
});

story("a token that was never issued makes a new player, who is told so", async (stage) => {
  const server = await stage.server();
  const ada = await stage.player("ada", `${server.address}/`);
  await ada.page.evaluate(() => localStorage.setItem("sametick.token", "0123456789abcdef".repeat(2)));
  await ada.page.goto(arena(server));
  await ada.element("new-player").getByText("You join as a new player").waitFor();
  await new Fighter(ada).lives();
  await ada.page.reload();
  await new Fighter(ada).lives();
  assert.equal(await ada.element("new-player").count(), 0);
});

story("where players sign in, the page says where, and takes a token from the site around it", async (stage) => {
  const server = await stage.server();
  const ada = await stage.player("ada", `${server.address}/`);
  await ada.page.route("**/api/server", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), sign_in: true } });
  });
  await ada.page.goto(arena(server));
  await ada.element("failure").getByText("no login form of its own").waitFor();
  await ada.page.evaluate(() => (location.hash = `#token=${"ab".repeat(16)}`));
  await ada.element("new-player").waitFor();
  assert.doesNotMatch(ada.page.url(), /token/);
});
