// A browser keeps copies of sessions, and brings one back when the server has lost everything.

import assert from "node:assert/strict";
import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import { OUT, story } from "./story.mjs";

/** The server comes back, and has nothing of any session. */
async function loseEverything(server) {
  await server.kill();
  await rm(path.join(server.folder, "sessions"), { recursive: true, force: true });
  await server.run();
}

/** Keeps a copy by the button, and says of which tick it is. */
async function keep(player) {
  await player.element("keep").click();
  const text = await player.element("copied").textContent();
  const tick = Number(/kept in this browser: tick (\d+)/.exec(text)?.[1]);
  assert.ok(tick > 0, text);
  return tick;
}

story("a session that the server has lost goes on from a browser's copy", async (stage) => {
  const server = await stage.server();
  const ada = await stage.player("ada", `${server.address}/play/pong/den`);
  await ada.plays();
  const first = await keep(ada);
  // A player who leaves has a copy of the end.
  await ada.element("leave").click();
  await ada.element("save-den").waitFor();
  const listed = await ada.element("save-den").textContent();
  assert.match(listed, /den.*Pong · tick \d+/s);
  const [download] = await Promise.all([ada.page.waitForEvent("download"), ada.element("download").click()]);
  assert.match(download.suggestedFilename(), /^den-\d+\.save$/);
  const file = path.join(OUT, "saves", download.suggestedFilename());
  await download.saveAs(file);
  assert.equal((await readFile(file)).subarray(0, 13).toString(), "sametick-save");

  await loseEverything(server);
  await ada.page.goto(`${server.address}/`);
  await ada.element("continue").click();
  const back = await ada.sees("its copy taken", ({ status }) => status?.brought?.taken && status.state === "playing");
  assert.ok(back.status.brought.ours >= first, `${back.status.brought.ours} follows ${first}`);
  const after = await ada.goesOn(await ada.sees("a tick", ({ tick }) => tick > back.status.brought.ours));
  await ada.agrees(after);
  await ada.element("copied").filter({ hasText: "goes on from your copy" }).waitFor();
  // Another player joins late, as usual, and the server has the session from now on.
  const bob = await stage.player("bob", `${server.address}/play/pong/den?bots=no`);
  await bob.plays();
  await ada.page.goto(`${server.address}/`);
  await ada.element("continue").click();
  const known = await ada.sees("that it is known", ({ status }) => status?.brought?.taken === false);
  assert.ok(known.status.brought.is_same && known.status.brought.theirs > back.status.brought.ours);

  // What was downloaded is what native players bring.
  await ada.page.goto("about:blank");
  await bob.page.goto("about:blank");
  await loseEverything(server);
  const bots = JSON.parse(
    await server.command("bot", "pong", "--connect", server.udp, "--bring", file, "--count", 1, "--seconds", 1, "--json"),
  );
  assert.match(bots.brought, /goes on from your copy, after tick \d+/);
});

story("a file that is picked is opened, or it is said what is wrong with it", async (stage) => {
  const server = await stage.server();
  const ada = await stage.player("ada", `${server.address}/`);
  const copies = path.join(server.folder, "copies");
  await server.command("bot", "pong", "--connect", server.udp, "--session", "attic", "--seconds", 1, "--save", `${copies}/attic.save`);
  await ada.element("no-saves").waitFor();
  await ada.element("pick-save").setInputFiles({ name: "notes.save", mimeType: "text/plain", buffer: Buffer.from("dear diary") });
  await ada.element("bad-save").filter({ hasText: "notes.save cannot be opened: not a save of a session" }).waitFor();
  await loseEverything(server);
  await ada.element("gone").waitFor({ state: "detached" });
  await ada.element("pick-save").setInputFiles(`${copies}/attic.save`);
  const seen = await ada.sees("the copy taken", ({ status }) => status?.brought?.taken);
  await ada.sees("later ticks", ({ tick }) => tick > seen.status.brought.ours + 30);
  // It is one of its saves from now on, until it is deleted.
  await ada.element("leave").click();
  await ada.element("save-attic").waitFor();
  await ada.element("delete-save").click();
  await ada.element("no-saves").waitFor();
});
