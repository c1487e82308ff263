// Screenshots of every page in every state: on a desktop and on a phone, in light and in dark. They are for
// review; a program only checks that nothing overflows at the side.

import { mkdir } from "node:fs/promises";
import { Fighter, PRACTICE } from "./fighter.mjs";
import { FOLDER, shoot, SIZES } from "./shots.mjs";
import { story } from "./story.mjs";

const PASSPHRASE = "open sesame, please";

for (const [size, look] of Object.entries(SIZES)) {
  story(`every page is seen on a ${size}`, async (stage) => {
    await mkdir(FOLDER, { recursive: true });
    const server = await stage.server();
    const ada = await stage.player("ada", `${server.address}/`, look);
    const shot = (state, player = ada) => shoot(player, size, state);
    const go = (to) => ada.page.goto(server.address + to);

    await ada.element("no-sessions").waitFor();
    await shot("home-empty");
    await go("/no/such/page");
    await shot("nowhere");

    await go("/play/pong/chess-club?bots=no");
    await ada.element("prompt").getByText("Waiting for 1 more player").waitFor();
    await shot("game-waiting");
    await go("/play/pong/den?listed");
    await ada.plays();
    await shot("game-ready");
    await ada.page.keyboard.press("Space");
    await ada.element("serve-count").waitFor();
    await shot("game-countdown");
    await ada.sees("the ball in play", ({ hud }) => hud.phase === "playing");
    await shot("game-playing");
    await ada.element("network").click();
    await ada.element("charts").waitFor();
    await ada.goesOn(await ada.look());
    await shot("game-panel");
    await ada.element("panel-close").click();
    await ada.element("invite").click();
    await ada.element("invite-link").waitFor();
    await shot("game-invite");
    await ada.page.keyboard.press("Escape");
    await ada.page.keyboard.press("?");
    await ada.element("help-close").waitFor();
    await shot("game-help");
    await ada.page.keyboard.press("Escape");

    const bob = await stage.player("bob", `${server.address}/`, look);
    await bob.element("sessions").waitFor();
    await shot("home-sessions", bob);
    await bob.page.goto(`${server.address}/play/pong/den?watch`);
    await bob.sees("the game", ({ status }) => status?.state === "watching");
    await shot("game-watching", bob);
    await bob.page.goto(`${server.address}/play/pong/den`);
    await bob.plays();
    const cyd = await stage.player("cyd", `${server.address}/play/pong/den`, look);
    await cyd.noticed("refused");
    await shot("game-full", cyd);
    await cyd.page.route("**/api/server", foreignBuild);
    await cyd.page.goto(`${server.address}/play/pong/den`);
    await cyd.element("failure").waitFor();
    await shot("game-other-build", cyd);
    await cyd.page.goto(`${server.address}/play/chess/den`);
    await cyd.element("failure").waitFor();
    await shot("game-unknown", cyd);
    await cyd.page.goto(`${server.address}/`);
    await cyd.element("outdated").waitFor();
    await shot("home-other-build", cyd);
    await cyd.page.unrouteAll({ behavior: "wait" });
    await cyd.page.goto("about:blank");

    await bob.page.goto(`${server.address}/`);
    await bob.element("sessions").waitFor();
    await server.kill();
    await ada.noticed("lost");
    await shot("game-lost");
    await bob.element("gone").waitFor();
    await shot("home-gone", bob);
  });

  story(`the arena is seen on a ${size}`, async (stage) => {
    await mkdir(FOLDER, { recursive: true });
    const server = await stage.server();
    const ada = await stage.player("ada", `${server.address}/play/arena/den?listed`, look);
    const fighter = new Fighter(ada);
    const { own } = await fighter.lives();
    const shot = (state) => shoot(ada, size, state);
    if (size === "desktop") await fighter.pointAt({ x: own.x + 3, y: own.y - 1 });
    await shot("arena-first");
    await ada.element("hint-close").click();
    await ada.element("character").click();
    await shot("arena-characters");
    await ada.element("character-guard").click();
    await ada.element("tool-wall").click();
    if (size === "desktop") await fighter.pointAt({ x: own.x + 2, y: own.y });
    await shot("arena-building");
    await ada.element("tool-shoot").click();
    await ada.element("scores").click();
    await ada.element("scoreboard").waitFor();
    await shot("arena-scores");
    await ada.element("scores-close").click();
    await ada.page.keyboard.press("g");
    await ada.element("network").click();
    await ada.element("charts").waitFor();
    await ada.goesOn(await ada.look());
    await shot("arena-panel");
    await ada.element("panel-close").click();
    await ada.page.keyboard.press("?");
    await ada.element("help-close").waitFor();
    await shot("arena-help");
    await ada.page.keyboard.press("Escape");
    // Bots spare a newcomer for a while; other players do not.
    const duel = `${server.address}/play/arena/duel?${PRACTICE}`;
    await ada.page.goto(duel);
    await fighter.lives();
    await shot("arena-shield");
    const bob = new Fighter(await stage.player("bob", duel));
    await bob.lives();
    const hunt = bob.hunts("ada down", ({ hud }) => hud.players.some(({ alive }) => !alive));
    await fighter.finds("that it was shot", ({ hud }) => hud.phase === "dead", { timeout_ms: 90_000 });
    await shot("arena-dead");
    await hunt;
  });

  story(`a connection in trouble is seen on a ${size}`, async (stage) => {
    await mkdir(FOLDER, { recursive: true });
    const server = await stage.server();
    const proxy = await stage.proxy(server);
    const ada = await stage.player("ada", `${server.proxied}/play/pong/den?route=webtransport`, look);
    await ada.plays();
    proxy.cut({ tcp: false });
    await ada.noticed("stalled");
    await shoot(ada, size, "game-stalled");
    await ada.page.reload();
    await ada.noticed("connecting");
    await shoot(ada, size, "game-connecting");
  });

  story(`the passphrase form is seen on a ${size}`, async (stage) => {
    await mkdir(FOLDER, { recursive: true });
    const server = await stage.server({ secret: PASSPHRASE });
    const ada = await stage.player("ada", `${server.address}/play/pong/den`, look);
    await ada.element("passphrase-field").fill("a guess");
    await shoot(ada, size, "passphrase");
    await ada.element("passphrase-send").click();
    await ada.page.getByText("not this server's passphrase").waitFor();
    await shoot(ada, size, "passphrase-wrong");
  });
}

/** The server's answer after an upgrade: the same, but for the build. */
async function foreignBuild(route) {
  const response = await route.fetch();
  const answer = await response.json();
  for (const game of answer.games) game.build = "0".repeat(32);
  await route.fulfill({ response, json: answer });
}
