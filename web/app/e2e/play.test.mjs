// Players play each other over every transport, with pages and native programs.

import assert from "node:assert/strict";
import { Player, points, scores } from "./player.mjs";
import { story } from "./story.mjs";
import { until } from "./until.mjs";

for (const route of ["websocket", "webtransport"]) {
  story(`two pages play a point over ${route}`, async (stage) => {
    const server = await stage.server();
    const address = `${server.address}/play/pong/den?bots=no&route=${route}`;
    const ada = await stage.player("ada", address);
    const bob = await stage.player("bob", address);
    const before = await ada.plays();
    await bob.plays();
    assert.deepEqual([before.status.route, (await bob.look()).status.route], [route, route]);

    await Promise.all([ada.pressUntilScored(), bob.pressUntilScored()]);
    await until("both see the same score", async () => {
      const [{ hud: one }, { hud: other }] = await Promise.all([ada.look(), bob.look()]);
      return points(one) > 0 && scores(one) === scores(other);
    });
    await Promise.all([ada.agrees(before), bob.agrees(before)]);
  });
}

story("a page plays a native bot that came by UDP", async (stage) => {
  const server = await stage.server();
  const ada = await stage.player("ada", `${server.address}/play/pong/mixed?bots=no&route=webtransport`);
  await ada.sees("itself in the session", ({ status }) => ["playing", "waiting"].includes(status?.state));
  const bot = server.command("bot", "pong", "--connect", server.udp, "--session", "mixed", "--count", 1, "--seconds", 6, "--json");
  await ada.sees("the bot in its seat", ({ hud }) => hud?.seats.every(({ driver }) => driver === "player"));
  const before = await ada.plays();
  await ada.pressUntilScored();
  await ada.agrees(before);
  const [report] = JSON.parse(await bot).bots;
  assert.equal(report.resyncs, 0);
  assert.ok(report.tick > before.tick, `the bot got to tick ${report.tick}`);
  assert.equal((await ada.look()).diagnostics.mismatches, 0);
});

story("a friend takes over from the bot", async (stage) => {
  const server = await stage.server();
  const ada = await stage.player("ada", `${server.address}/`);
  await ada.element("game-pong").getByTestId("with-a-bot").click();
  await ada.plays();
  await ada.sees("a bot opposite", ({ hud }) => hud.seats.some(({ driver }) => driver === "bot"));
  await ada.pressUntilScored();
  const bob = await stage.player("bob", ada.page.url());
  await bob.plays();
  await ada.sees("bob opposite", ({ hud }) => hud.seats.every(({ driver }) => driver === "player"));
  await Promise.all([ada.agrees(await ada.look()), bob.agrees(await bob.look())]);
});

story("a tab that is loaded anew, or left and come back to, has its own seat and score; a copy of it has another seat", async (stage) => {
  const server = await stage.server();
  const ada = await stage.player("ada", `${server.address}/`);
  await ada.element("game-pong").getByTestId("with-a-bot").click();
  const { status } = await ada.plays();
  const hud = await ada.pressUntilScored();
  const isBack = async (how) => {
    const now = await ada.plays();
    assert.equal(now.status.seat, status.seat, how);
    // The other side may have scored meanwhile; no player loses a point.
    hud.seats.forEach(({ seat, score }) => assert.ok(now.hud.seats[seat].score >= score, `${how}: ${scores(hud)}, then ${scores(now.hud)}`));
    assert.deepEqual(now.hud.seats.filter(({ you }) => you).map(({ seat }) => seat), [status.seat]);
  };
  await ada.page.reload();
  await isBack("after a reload");
  await ada.page.goBack();
  await ada.element("game-pong").waitFor();
  await ada.page.goForward();
  await isBack("back and forward within the app");
  await ada.page.goto("about:blank");
  await ada.page.goBack();
  await isBack("back from elsewhere");

  const before = await ada.look();
  const [page] = await Promise.all([ada.page.waitForEvent("popup"), ada.page.evaluate(() => void window.open(location.href))]);
  const copy = new Player("a copy of ada's tab", page).listen();
  const { status: copied } = await copy.plays();
  assert.notEqual(copied.seat, status.seat);
  const after = await ada.goesOn(before);
  assert.equal(after.status.seat, status.seat);
  assert.equal(after.diagnostics.reconnects, before.diagnostics.reconnects);
});

story("a player who joins a full session may watch", async (stage) => {
  const server = await stage.server();
  const address = `${server.address}/play/pong/full?bots=no`;
  for (const name of ["ada", "bob"]) await (await stage.player(name, address)).sees("a seat", ({ status }) => status?.seat != null);
  const cyd = await stage.player("cyd", address);
  await cyd.noticed("refused");
  await cyd.element("way-watch").click();
  const before = await cyd.sees("the others play", ({ status }) => status?.state === "watching");
  await cyd.sees("time pass", ({ tick }) => tick > before.tick + 30);
});
