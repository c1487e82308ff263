// What lies over the arena's map never lies over something else of it: on every screen, with much to say.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { Fighter, PRACTICE } from "./fighter.mjs";
import { FOLDER } from "./shots.mjs";
import { story } from "./story.mjs";
import { tell, tellable } from "./told.mjs";
import { until } from "./until.mjs";

const SIZES = [[844, 390], [390, 844], [320, 568], [568, 320], [768, 1024], [1280, 800]];

/** As many as a room of a page may have, with names as long and figures as high as they get. */
const NAME = "Wilhelmina the Magnificent".slice(0, 24);
const PLAYERS = Array.from({ length: 38 }, (_, at) => ({
  seat: at < 32 ? at : 968 + at,
  name: at < 32 ? `${NAME.slice(0, 21)} ${at}` : null,
  score: 128 - at,
  deaths: 100 + at,
  alive: at % 3 > 0,
  bot: at >= 32,
  you: at === 0,
  character: ["scout", "guard", "smith"][at % 3],
}));
const CROWD = { players: PLAYERS, feed: [1, 2, 3, 4].map((killer) => ({ killer, victim: 0, ago: killer / 4 })), score: 128, deaths: 100, builds: { used: 24, limit: 24 } };

const STATES = {
  hint: { hud: CROWD },
  busy: { hud: CROWD, status: { pace: 40 } },
  fallen: { hud: { ...CROWD, phase: "dead", respawnIn: 1.5, health: 0 } },
  "fallen-busy": { hud: { ...CROWD, phase: "dead", respawnIn: 1.5, health: 0 }, status: { pace: 40 } },
  counting: { hud: { ...CROWD, points: 10, round: 2, wait: 3 } },
  "counting-busy": { hud: { ...CROWD, points: 10, round: 2, wait: 3 }, status: { pace: 40 } },
  watching: { hud: { ...CROWD, phase: "watching" } },
};

/** What has to be seen besides the rest. */
const SHOWN = {
  hint: "hint",
  busy: "slowed",
  fallen: "fallen",
  "fallen-busy": "fallen",
  counting: "round-countdown",
  "counting-busy": "round-countdown",
  watching: "follow",
};

const PARTS = ["vitals", "leaders", "scores", "character", "minimap", "hint", "slowed", "fallen", "round-countdown", "tools", "follow", "stick-walk", "stick-aim"];

/** Where everything is that can be seen, and the stage that it has to be on. */
function boxes(page) {
  return page.evaluate((parts) => {
    const box = (element) => {
      const { left, top, right, bottom } = element.getBoundingClientRect();
      return { left, top, right, bottom };
    };
    const named = parts.map((name) => [name, document.querySelector(`[data-testid="${name}"]`)]);
    const feed = [...document.querySelectorAll('[data-testid="feed"] li')].map((line, at) => [`line ${at} of the feed`, line]);
    const seen = [...named, ...feed].filter(([, element]) => element?.checkVisibility({ visibilityProperty: true }));
    const cut = [...document.querySelectorAll('[data-testid="vitals"], [data-testid="won"], [data-testid="won"] .list, [data-testid="board"] .list')]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
      .map(({ outerHTML }) => outerHTML.slice(0, 80));
    return { stage: box(document.querySelector('[data-testid="stage"]')), seen: seen.map(([name, element]) => ({ name, ...box(element) })), cut };
  }, PARTS);
}

function check({ stage, seen, cut }, where) {
  for (const one of seen) {
    const inside = one.left >= stage.left && one.right <= stage.right && one.top >= stage.top && one.bottom <= stage.bottom;
    assert.ok(inside, `${where}: ${one.name} is not on the stage: ${JSON.stringify({ one, stage })}`);
    for (const other of seen) {
      if (other === one) continue;
      const apart = one.right <= other.left || other.right <= one.left || one.bottom <= other.top || other.bottom <= one.top;
      assert.ok(apart, `${where}: ${one.name} lies over ${other.name}: ${JSON.stringify({ one, other })}`);
    }
  }
  assert.deepEqual(cut, [], `${where}: figures are cut off`);
}

/** On a phone that lies, an open panel leaves little room. */
async function checkBesidePanel(player) {
  const whole = (await boxes(player.page)).stage.right;
  await player.element("network").click();
  const found = await until("the panel stands beside the stage", async () => {
    const found = await boxes(player.page);
    return found.stage.right < whole && found;
  });
  check(found, "beside the panel");
  await player.element("panel-close").click();
  await until("the stage has its room again", async () => (await boxes(player.page)).stage.right === whole);
}

/** Whether nothing lies over the middle of an element. */
function isOnTop(locator) {
  return locator.evaluate((element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    return element.contains(document.elementFromPoint(left + width / 2, top + height / 2));
  });
}

/** The hint goes by itself after a while: then it is asked for again. */
async function sees(player, name, told) {
  const { page } = player;
  await until(`${player.name} sees ${name}`, async () => {
    if (await player.element(name).isVisible()) return true;
    await page.reload();
    await new Fighter(player).lives();
    await tell(player, told);
    return player.element(name).isVisible();
  });
}

for (const [look, hands] of [[{ hasTouch: true, isMobile: true }, "thumbs"], [{}, "a mouse"]]) {
  story(`nothing lies over anything else in the arena with ${hands}`, async (stage) => {
    await mkdir(FOLDER, { recursive: true });
    const server = await stage.server();
    const ada = await stage.player("ada", "about:blank", look);
    const { page } = ada;
    await tellable(page.context());
    await page.goto(`${server.address}/play/arena/den?${PRACTICE}`);
    await new Fighter(ada).lives();
    for (const [width, height] of SIZES) {
      await page.setViewportSize({ width, height });
      for (const [state, told] of Object.entries(STATES)) {
        const where = `${state} at ${width}×${height}`;
        await tell(ada, told);
        await sees(ada, SHOWN[state], told);
        await until(`${where} is drawn`, async () => (await boxes(page)).stage.right === width);
        const found = await boxes(page);
        check(found, where);
        const sticks = found.seen.filter(({ name }) => name.startsWith("stick-")).length;
        assert.equal(sticks, hands === "thumbs" && state !== "watching" ? 2 : 0, where);
        if (hands === "thumbs") await page.screenshot({ path: path.join(FOLDER, `arena-${state}-${width}x${height}.png`) });
      }
      await tell(ada, { hud: CROWD });
      if (width === 844) await checkBesidePanel(ada);
      for (const opened of ["scores", "character"]) {
        await ada.element(opened).click();
        const closer = ada.element(opened === "scores" ? "scores-close" : "characters-close");
        await closer.waitFor();
        check(await boxes(page), `${opened} at ${width}×${height}`);
        assert.ok(await isOnTop(closer), `${opened} cannot be closed at ${width}×${height}`);
        await closer.click();
        await closer.waitFor({ state: "detached" });
      }
      await tell(ada, { hud: { ...CROWD, points: 15, winner: 0 } });
      await ada.element("won").waitFor();
      const [card] = [await ada.element("won").boundingBox()];
      const { stage: all, seen, cut } = await boxes(page);
      assert.deepEqual(cut, [], `the end at ${width}×${height}: figures are cut off`);
      assert.deepEqual(seen, [], `the winner stands alone at ${width}×${height}`);
      assert.ok(card.y >= all.top && card.y + card.height <= all.bottom && card.x >= 0 && card.x + card.width <= width, `the end sticks out at ${width}×${height}`);
      assert.ok(await isOnTop(ada.element("another")), `no other game can be begun at ${width}×${height}`);
      if (hands === "thumbs") await page.screenshot({ path: path.join(FOLDER, `arena-won-${width}x${height}.png`) });
    }
  });
}
