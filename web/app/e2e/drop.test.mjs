// Connections fail in various ways, and players resume where they were.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { story } from "./story.mjs";
import { until } from "./until.mjs";

/** Two people in a session, the first of them behind a proxy. */
async function twoPlay(stage, route) {
  const server = await stage.server();
  const proxy = await stage.proxy(server);
  const path = `/play/pong/den?bots=no&route=${route}`;
  const ada = await stage.player("ada", server.proxied + path);
  const bob = await stage.player("bob", server.address + path);
  await bob.plays();
  const before = await ada.plays();
  return { server, proxy, ada, bob, before };
}

for (const route of ["websocket", "webtransport"]) {
  story(`a connection over ${route} that goes silent is opened again`, async (stage) => {
    const { proxy, ada, bob, before } = await twoPlay(stage, route);
    proxy.cut();
    await ada.sees("that nothing arrives", ({ status }) => status.state === "stalled");
    const during = await bob.look();
    await ada.sees("that it is cut off", ({ status }) => ["lost", "connecting"].includes(status.state));
    proxy.heal();
    const after = await ada.plays();
    assert.equal(after.status.seat, before.status.seat);
    assert.ok(after.diagnostics.reconnects > 0);
    await bob.goesOn(during);
    await Promise.all([ada.agrees(after), bob.agrees(await bob.look())]);
  });
}

story("the button that drops the connection shows how it comes back, and the message log has both links", async (stage) => {
  const server = await stage.server();
  const ada = await stage.player("ada", `${server.address}/play/pong/den`);
  const before = await ada.plays();
  await ada.page.keyboard.press("n");
  await ada.element("drop").click();
  await ada.sees("that it is cut off", ({ status }) => status.state === "lost");
  await ada.noticed("lost");
  const after = await ada.plays();
  assert.equal(after.status.seat, before.status.seat);
  assert.ok(after.tick > before.tick);
  await ada.agrees(after);
  const [download] = await Promise.all([ada.page.waitForEvent("download"), ada.element("messages").click()]);
  assert.equal(download.suggestedFilename(), "pong-den-messages.jsonl");
  const lines = readFileSync(await download.path(), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
  const of = (direction, kind) => lines.filter((line) => line.direction === direction && line.kind === kind);
  assert.equal(of("send", "join").length, 2);
  assert.equal(of("recv", "welcome").length, 2);
  assert.ok(of("recv", "ticks").length > 30 && of("send", "inputs").length > 30);
  assert.ok([...of("send", "join"), ...of("recv", "welcome")].every(({ payload, bytes }) => payload === "" && bytes > 0));
  const newest = lines.at(-1);
  assert.ok(Math.abs(newest.unix_us / 1_000 - Date.now()) < 60_000 && newest.session === "den" && newest.seat === 0);
});

story("where WebTransport is swallowed, a page takes WebSocket by itself", async (stage) => {
  const server = await stage.server();
  const proxy = await stage.proxy(server);
  proxy.cut({ tcp: false });
  const ada = await stage.player("ada", `${server.proxied}/play/pong/den`);
  const before = await ada.plays();
  assert.equal(before.status.route, "websocket");
  // It has extra sockets for its datagrams, and goes on without them.
  await until("four extra sockets", () => proxy.requestsFor("?extra=").length === 4);
  for (const { client } of proxy.requestsFor("?extra=")) client.destroy();
  await until("the extra sockets are gone", () => proxy.requestsFor("?extra=").length === 0);
  const after = await ada.goesOn(await ada.sees("a tick", ({ tick }) => tick > 0));
  assert.equal(after.status.attempt, before.status.attempt, "over the same link");
});

story("WebTransport that goes silent in the middle of a game is replaced by WebSocket", async (stage) => {
  const server = await stage.server();
  const proxy = await stage.proxy(server);
  const ada = await stage.player("ada", `${server.proxied}/play/pong/den`);
  const before = await ada.plays();
  assert.equal(before.status.route, "webtransport");
  proxy.cut({ tcp: false });
  const after = await ada.sees("another way", ({ status }) => status.state === "playing" && status.route === "websocket");
  assert.equal(after.status.seat, before.status.seat);
  await ada.goesOn(after);
});

story("a server that was killed and started again is played on by itself", async (stage) => {
  const server = await stage.server();
  const ada = await stage.player("ada", `${server.address}/play/pong/den`);
  const cyd = await stage.player("cyd", `${server.address}/`);
  await cyd.element("game-pong").waitFor();
  const bob = await stage.player("bob", `${server.address}/play/pong/den?bots=no`);
  await ada.plays();
  const before = [await ada.plays(), await bob.plays()];
  await server.kill();
  await ada.noticed("lost");
  await cyd.element("gone").waitFor();
  await server.run();
  for (const [player, then] of [[ada, before[0]], [bob, before[1]]]) {
    const now = await player.plays();
    assert.equal(now.status.seat, then.status.seat);
    // It is the same game: it goes on after what was last agreed on, not from its beginning.
    assert.ok(now.tick > then.diagnostics.agreed, `${now.tick} follows ${then.diagnostics.agreed}`);
    await player.agrees(now);
  }
  await cyd.element("gone").waitFor({ state: "detached" });
  assert.equal(await ada.element("begun-anew").count(), 0);
});
