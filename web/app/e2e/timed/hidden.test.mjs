// A hidden page: the browser may freeze it. Run alone, because other stories would take time away from it.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { story } from "../story.mjs";

/** Longer than the server keeps a silent link: the page has to come back, not just to go on. */
const FROZEN_MS = 30_000;

/** Of so many ticks one may be late: the machine draws two browsers beside the game, and others may be at work on it. That not
 * one is late because of the frozen page is shown in virtual time (crates/client/tests). */
const TICKS_PER_HICCUP = 10;

story("a page that was hidden and frozen for 30 s catches up, and the other's game is not disturbed", async (stage) => {
  const server = await stage.server();
  const address = `${server.address}/play/pong/den?bots=no`;
  const ada = await stage.loneTab("ada", address);
  const bob = await stage.player("bob", address);
  const seated = await ada.plays();
  await bob.plays();

  await ada.page.send("Page.setWebLifecycleState", { state: "frozen" });
  const frozen = await ada.sees("nothing, hidden", ({ visible }) => !visible);
  const before = await bob.look();
  // The only fixed time here: the browser freezes the page for this long.
  await pause(FROZEN_MS);
  const after = await bob.look();
  const slept = await ada.look();
  assert.equal(slept.tick, frozen.tick, "the page did not stand still");
  const passed = after.tick - before.tick;
  assert.ok(passed > (FROZEN_MS / 1000) * 60 * 0.8, `bob's game went on for ${passed} ticks`);
  assert.equal(after.status.state, "playing");
  const late = after.diagnostics.omissions - before.diagnostics.omissions;
  assert.ok(late <= passed / TICKS_PER_HICCUP, `${late} of bob's ${passed} inputs came too late`);

  await ada.page.send("Page.setWebLifecycleState", { state: "active" });
  const back = await ada.sees("what bob sees", ({ status, tick }) => status.state === "playing" && tick > after.tick);
  assert.equal(back.status.seat, seated.status.seat);
  await Promise.all([ada.agrees(back), bob.agrees(after)]);
  // Still hidden, but no longer frozen: the page keeps up.
  assert.equal((await ada.goesOn(back)).visible, false);
});
