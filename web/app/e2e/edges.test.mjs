// Edge cases of sessions and addresses: a kept seat, a deserted game, a link to nothing.

import assert from "node:assert/strict";
import { Member } from "./member.mjs";
import { story } from "./story.mjs";
import { until } from "./until.mjs";

const NO_SESSION = `/s/${"0".repeat(32)}`;

/** Keeps the highest number that a countdown shows from now on, in `window.highest`. */
function noteCountdowns(page) {
  return page.evaluate(() => {
    window.highest = null;
    const note = () => {
      const seconds = parseInt(document.querySelector('[data-testid="countdown"]')?.textContent ?? "", 10);
      if (!Number.isNaN(seconds)) window.highest = Math.max(seconds, window.highest ?? 0);
    };
    new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
}

story("a seat waits for a minute and never for longer, and a game that everybody has left is said to be deserted", async (stage) => {
  const server = await stage.server();
  const ada = new Member(await stage.player("ada", `${server.address}/lobby`));
  const line = { cut: false };
  await ada.player.page.routeWebSocket(/session\/ws/, (page) => {
    if (line.cut) return void page.close();
    page.connectToServer();
    line.hangUp = () => page.close();
  });
  await ada.creates({ name: "Tuesday", choose: ["scenario-practice"] });
  const link = await ada.gathers();
  await ada.sits(0);
  await ada.isReady();
  await ada.element("start").click();
  // Long enough that a clock which was read at the beginning would be wrong by seconds.
  let seen = await ada.player.plays();
  for (let round = 0; round < 4; round++) seen = await ada.player.goesOn(seen);
  await noteCountdowns(ada.player.page);
  line.cut = true;
  line.hangUp();
  await ada.player.noticed("away");
  const highest = await until("a countdown", () => ada.player.page.evaluate(() => window.highest));
  assert.ok(highest > 50 && highest <= 60, `${highest} s of 60`);
  line.cut = false;
  await ada.isIn("running");

  const bob = new Member(await stage.player("bob", `${server.address}/lobby`));
  const row = bob.element("lobby-row");
  await row.getByText("Join in").waitFor();
  await ada.element("leave").click();
  await ada.element("leave-sure").click();
  await row.getByText("Deserted").waitFor();
  await row.getByText("Go in").waitFor();
  assert.equal(await row.getByText("Playing").count(), 0);
  // The home page does not offer deserted sessions, but their link still works.
  await bob.player.page.goto(`${server.address}/`);
  await bob.element("lobby-teaser").waitFor();
  await until("the list of the home page has been asked for", () => bob.player.page.evaluate(() => performance.getEntriesByType("resource").some(({ name }) => name.includes("/api/lobby"))));
  // What the page was given may be half a second old; it asks again.
  await until("the home page has no row", async () => (await bob.element("lobby-row").count()) === 0);
  await bob.player.page.goto(link);
  await bob.joins();
  await bob.isIn("running");
});

story("a link to no session, and an address that leads nowhere, say so and lead on", async (stage) => {
  const server = await stage.server();
  const ada = new Member(await stage.player("ada", `${server.address}/`));
  const { page } = ada.player;
  for (const address of ["/admin", "/s/unknown", "/lobby/x"]) {
    const answer = await page.goto(server.address + address);
    assert.equal(answer.status(), 404, address);
    await ada.element("failure").getByText("There is nothing here").waitFor();
  }
  const answer = await page.goto(`${server.address}/play/chess/den`);
  assert.equal(answer.status(), 404);
  await ada.element("failure").getByText("No such game").waitFor();
  await ada.element("failure").getByRole("link").click();
  await ada.element("game-pong").waitFor();

  // A server that has just begun cannot tell yet; the page asks again by itself.
  await page.goto(server.address + NO_SESSION);
  assert.match(await ada.sent("no-session"), /There is no such session/);
  assert.equal(await page.getByText("You are invited").count(), 0);
  // An unlisted session with a password looks the same; a player with the password says so.
  await ada.element("has-password").click();
  await ada.joins("open sesame");
  await ada.sent("not-found");
  await page.goto(server.address + NO_SESSION);
  await ada.element("way-new").click();
  await ada.element("create-form").waitFor();
});
