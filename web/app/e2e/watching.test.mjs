// Spectators of an arena move the view and follow players. And the tab key leads out of the game again.

import assert from "node:assert/strict";
import { Fighter, PRACTICE } from "./fighter.mjs";
import { PHONE, story } from "./story.mjs";
import { Thumbs } from "./thumbs.mjs";
import { until } from "./until.mjs";

/** Where the middle of the map is on the page: elsewhere if the view was moved. */
async function middle(player) {
  const { hud } = await player.look();
  return player.page.evaluate((half) => window.sametick.onPage(half, half), hud.size / 2);
}

/** Watches until the view has been moved in this way. */
async function moves(player, from, what, is_so) {
  return until(`${player.name} sees the view move ${what}`, async () => {
    const now = await middle(player);
    return is_so(now.x - from.x, now.y - from.y) && now;
  });
}

async function watches(stage, name, address, look) {
  const player = await stage.player(name, address, look);
  await player.element("follow").waitFor();
  await player.sees("the map", ({ hud }) => hud?.size > 0 && hud.players.length > 0);
  await until(`${name} sees the middle of the map in the middle`, async () => {
    const [at, box] = [await middle(player), await player.element("stage").boundingBox()];
    return Math.abs(at.x - box.x - box.width / 2) < 2 && Math.abs(at.y - box.y - box.height / 2) < 2;
  });
  return player;
}

story("who watches moves the view with keys, mouse and fingers, and follows a player", async (stage) => {
  const server = await stage.server();
  const address = `${server.address}/play/arena/den`;
  // So many that the map is larger than the view.
  const ada = await stage.player("ada", `${address}?${PRACTICE}&players=32`);
  const fighter = new Fighter(ada);
  await fighter.lives();
  const name = (await ada.look()).hud.players[0].name;

  const bob = await watches(stage, "bob", `${address}?watch`);
  await bob.element("follow-hint").getByText("Drag or").waitFor();
  let from = await middle(bob);
  await bob.page.keyboard.down("d");
  from = await moves(bob, from, "right", (x) => x < -60);
  await bob.page.keyboard.up("d");
  const box = await bob.element("stage").boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  from = await middle(bob);
  await bob.page.mouse.move(x, y);
  await bob.page.mouse.down();
  await bob.page.mouse.move(x + 90, y + 40, { steps: 3 });
  await bob.page.mouse.up();
  from = await moves(bob, from, "with the mouse", (x, y) => x > 60 && y > 20);

  await bob.page.keyboard.press("f");
  await bob.element("followed").getByText(name).waitFor();
  const isInTheMiddle = async () => {
    const own = (await fighter.scene()).own;
    const at = own && (await bob.page.evaluate(([x, y]) => window.sametick.onPage(x, y), [own.x, own.y]));
    // The view stops where the map does, away from the middle.
    return at && at.x > box.x && at.y > box.y && at.x < box.x + box.width && at.y < box.y + box.height;
  };
  await until("ada is in bob's view", isInTheMiddle);
  await fighter.walkSome();
  await until("ada is still in bob's view", isInTheMiddle);
  await bob.element("follow-nobody").click();
  await bob.element("followed").getByText("Free view").waitFor();
  const { own } = await fighter.scene();
  await until("bob follows whom it points at", async () => {
    const at = await bob.page.evaluate(([x, y]) => window.sametick.onPage(x, y), [own.x, own.y]);
    await bob.page.mouse.click(at.x, at.y);
    return (await bob.element("followed").innerText()).includes(name);
  });

  const cyd = await watches(stage, "cyd", `${address}?watch`, { viewport: PHONE, hasTouch: true, isMobile: true });
  await cyd.element("follow-hint").getByText("tap a player").waitFor();
  from = await middle(cyd);
  const thumbs = await Thumbs.on(cyd.page);
  await thumbs.put(1, { x: 200, y: 400 });
  await thumbs.put(1, { x: 230, y: 420 });
  await thumbs.put(1, { x: 260, y: 500 });
  await thumbs.lift(1);
  await moves(cyd, from, "with a finger", (x, y) => x > 30 && y > 50);
  // A browser takes a tap right after a quick drag for the end of its motion, and makes no click of it.
  await until("cyd follows the only player", async () => {
    await cyd.element("follow-next").tap();
    return (await cyd.element("followed").innerText()).includes(name);
  });
});

story("the tab key leads through everything in the arena and out of it again", async (stage) => {
  const server = await stage.server();
  const ada = await stage.player("ada", `${server.address}/play/arena/den?${PRACTICE}`);
  const fighter = new Fighter(ada);
  await fighter.lives();
  const { page } = ada;
  await ada.element("stage").focus();
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("data-testid") ?? document.activeElement?.tagName);
  const visited = new Set();
  await until("the focus has left the arena", async () => {
    await page.keyboard.press("Tab");
    const now = await focused();
    visited.add(now);
    return now === "BODY" || now === "leave";
  });
  for (const name of ["scores", "character", "tool-shoot", "tool-remove"]) assert.ok(visited.has(name), `${name} is among ${[...visited]}`);
  assert.equal(await ada.element("board").count(), 0);
  // Backwards as well, and keys still walk wherever the focus is.
  await ada.element("stage").focus();
  await page.keyboard.press("Shift+Tab");
  assert.notEqual(await focused(), "stage");
  await fighter.walkSome();
  await page.keyboard.down("q");
  await ada.element("board").waitFor();
  await page.keyboard.up("q");
  await ada.element("board").waitFor({ state: "detached" });
});
