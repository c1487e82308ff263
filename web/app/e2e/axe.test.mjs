// Accessibility: axe finds no violation on any kind of page, in light and in dark.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { Fighter, PRACTICE } from "./fighter.mjs";
import { Member } from "./member.mjs";
import { PHONE, story } from "./story.mjs";

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What both themes have in common is looked at once. */
const THEMES = [["light", {}], ["dark", { runOnly: ["color-contrast"] }]];

/** Waits until a theme is worn, and ends what is still on the way to its colours. */
async function settled(page, theme) {
  await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, theme);
  await page.evaluate(() => {
    for (const animation of document.getAnimations()) if (animation.effect?.getComputedTiming().endTime !== Infinity) animation.finish();
  });
}

async function check({ page }, state) {
  const found = [];
  for (const [colorScheme, options] of THEMES) {
    await page.emulateMedia({ colorScheme });
    await settled(page, colorScheme);
    if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
    const { violations } = await page.evaluate((options) => window.axe.run(document, { resultTypes: ["violations"], ...options }), options);
    for (const { id, help, nodes } of violations) {
      found.push(`${colorScheme}: ${id}: ${help}\n${nodes.map(({ html, failureSummary }) => `  ${html}\n    ${failureSummary}`).join("\n")}`);
    }
  }
  assert.equal(found.length, 0, `axe on ${state}:\n${found.join("\n")}`);
}

story("axe finds nothing wrong with home, lobby and sessions", async (stage) => {
  const server = await stage.server();
  const ada = new Member(await stage.player("ada", `${server.address}/lobby`));
  const { player } = ada;
  const go = (to) => player.page.goto(server.address + to);
  await ada.element("lobby-empty").waitFor();
  await check(player, "the empty lobby");
  await ada.element("create-open").click();
  await ada.element("create-form").waitFor();
  await check(player, "the form for a new session");
  await ada.element("create-panel-close").click();
  await ada.creates({ name: "Tuesday", choose: ["scenario-practice"] });
  const link = await ada.gathers();
  await ada.sits(0);
  await check(player, "the page of a session");

  const bob = new Member(await stage.player("bob", `${server.address}/lobby`, { viewport: PHONE }));
  await bob.element("lobby-row").waitFor();
  await check(bob.player, "the lobby on a phone");
  await bob.player.page.goto(link);
  await bob.element("join-submit").waitFor();
  await check(bob.player, "the door of a session");
  await bob.player.page.goto(`${server.address}/s/${"0".repeat(32)}`);
  await bob.sent("no-session");
  await check(bob.player, "a link to no session");

  await ada.isReady();
  await ada.element("start").click();
  await player.plays();
  await check(player, "the game of a session");
  await go("/play/pong/den?listed&bots=no");
  await player.sees("itself in the session", ({ status }) => ["playing", "waiting"].includes(status?.state));
  await bob.player.page.goto(`${server.address}/`);
  await bob.element("sessions").waitFor();
  await check(bob.player, "the home page");
});

story("axe finds nothing wrong with games, their panels and failures", async (stage) => {
  const server = await stage.server();
  const ada = await stage.player("ada", `${server.address}/play/pong/den`);
  await ada.plays();
  await check(ada, "pong");
  await ada.element("network").click();
  await ada.element("charts").waitFor();
  await check(ada, "the network panel");
  await ada.page.goto(`${server.address}/play/arena/den?${PRACTICE}`);
  await new Fighter(ada).lives();
  await check(ada, "arena");
  await ada.element("scores").click();
  await ada.element("scoreboard").waitFor();
  await check(ada, "arena's scores");
  await ada.element("scores-close").click();
  await ada.element("character").click();
  await ada.element("characters").waitFor();
  await check(ada, "arena's characters");
  await ada.page.keyboard.press("Escape");
  await ada.page.keyboard.press("?");
  await ada.element("help-close").waitFor();
  await check(ada, "arena's help");
  await ada.page.goto(`${server.address}/play/arena/den?watch`);
  await ada.element("follow").waitFor();
  await check(ada, "arena for those who watch");
  for (const address of ["/admin", "/play/chess/den"]) {
    await ada.page.goto(server.address + address);
    await ada.element("failure").waitFor();
    await check(ada, address);
  }
  await ada.page.goto(`${server.address}/`);
  await ada.element("no-sessions").waitFor();
  await server.kill();
  await ada.element("gone").waitFor();
  await check(ada, "the home page of a server that is gone");
});
