// The lobby and the page of a session in every state, as people see them. The states that take minutes, or a server that fails,
// are told to the page by the test, over the connection to the real host.

import { mkdir } from "node:fs/promises";
import { Member } from "./member.mjs";
import { Player } from "./player.mjs";
import { FOLDER, shoot, SIZES } from "./shots.mjs";
import { story } from "./story.mjs";

const ENDS = ["unclaimed", "idle", "abandoned", "finished", "quarantined", "moved", "stopped"].map((over) => ({ over }));
const SCREENS = [
  ["kicked", "kicked"],
  ["banned", "banned"],
  ["left", "left"],
  ["came_back", "elsewhere"],
  ["bad_token", "released"],
  ...ENDS.map((closing) => [closing, closing.over]),
];
const REFUSED = ["full", "over", "banned", "quarantined", "stopping", "unavailable", "lost", "too_many_guesses", "too_fast", "busy"];
const SCORES = { scores: [{ seat: 0, points: 5, won: true }, { seat: 1, points: 3, won: false }] };

/** Lets the test send messages in place of the server to pages that connect after this. */
async function speakTo(player, path) {
  const spoken = {};
  await player.page.routeWebSocket(path, (page) => {
    const server = page.connectToServer();
    page.onMessage((message) => {
      const refusal = spoken.refuse?.(JSON.parse(message));
      if (refusal) page.send(JSON.stringify(refusal));
      else server.send(message);
    });
    spoken.tell = (message) => page.send(JSON.stringify({ v: 2, feature: "session", ...message }));
  });
  return spoken;
}

for (const [size, look] of Object.entries(SIZES)) {
  story(`lobby and sessions are seen on a ${size}`, async (stage) => {
    await mkdir(FOLDER, { recursive: true });
    const server = await stage.server();
    const ada = new Member(await stage.player("ada", `${server.address}/lobby`, look));
    const host = await speakTo(ada.player, /session\/ws/);
    const shot = (state, { player } = ada) => shoot(player, size, state);
    await ada.element("lobby-empty").waitFor();
    await shot("lobby-empty");
    await ada.element("create-open").click();
    await ada.element("create-form").waitFor();
    await shot("lobby-create");
    await ada.element("game-arena").check({ force: true });
    await shot("lobby-create-arena");
    await ada.element("create-panel-close").click();
    // Without an end, so that it is not over before the last picture is taken.
    await ada.creates({ name: "Tuesday", choose: ["scenario-practice"] });
    const link = await ada.gathers();
    await shot("session-alone");

    const bob = new Member(await stage.player("bob", `${server.address}/lobby`, look));
    await bob.element("lobby-row").waitFor();
    await shot("lobby-list", bob);
    await bob.player.page.goto(link);
    await bob.element("join-submit").waitFor();
    await shot("session-door", bob);
    await bob.joins();
    await bob.gathers();
    await ada.sits(0);
    await bob.sits(1);
    await bob.isReady();
    await ada.element("chat-input").fill("hello");
    await ada.element("chat-send").click();
    await bob.element("chat-line").waitFor();
    await shot("session-two");
    await ada.element("change-open").click();
    await ada.element("change-submit").waitFor();
    await shot("session-change");
    await ada.element("change-panel-close").click();
    await ada.element("kick-open").click();
    await shot("session-kick");
    await ada.element("kick-panel-close").click();
    await ada.isReady();
    await ada.element("start").click();
    await ada.player.plays();
    await shot("running");
    if (size === "phone") await ada.element("side-open").click();
    await ada.element("seats-open").click();
    await shot("running-seats");
    host.tell({ kind: "event", event: { phase: { phase: "results", round: 1, results: JSON.stringify(SCORES) } } });
    await ada.element("results").waitFor();
    await shot("session-results");

    for (const [closing, name] of SCREENS) {
      host.tell({ kind: "closing", closing });
      await ada.sent(name);
      await shot(`screen-${name}`);
      await ada.player.page.goto(`${server.address}/`);
      await ada.opens(link, "running");
    }
    await ada.player.page.goto(`${server.address}/lobby`);
    await ada.element("row-return").waitFor();
    await shot("lobby-return");
    await ada.player.page.goto(`${server.address}/`);
    await ada.element("return").waitFor();
    await shot("home-return");
    await ada.opens(link, "running");
    const second = new Member(new Player("ada again", await ada.player.page.context().newPage()).listen());
    await second.player.page.goto(link);
    await second.element("door-elsewhere").waitFor();
    await shot("session-door-member", second);
  });

  story(`the closed doors of a session are seen on a ${size}`, async (stage) => {
    await mkdir(FOLDER, { recursive: true });
    const server = await stage.server();
    const ada = new Member(await stage.player("ada", `${server.address}/lobby`, look));
    const gateway = await speakTo(ada.player, /lobby\/ws/);
    let refused = "no_host";
    const answered = (seq, refused) => ({ v: 2, kind: "answer", seq, feature: "lobby", answer: { refused } });
    gateway.refuse = ({ action, seq }) => {
      if (action === "find") return answered(seq, "lost");
      return (action === "create" || action === "join") && answered(seq, refused);
    };
    await ada.player.page.reload();
    await ada.element("create-open").click();
    await ada.element("create-submit").click();
    await ada.element("create-wrong").getByText("no place").waitFor();
    await shoot(ada.player, size, "lobby-no-host");
    for (refused of REFUSED) {
      await ada.player.page.goto(`${server.address}/s/${"0".repeat(32)}`);
      await ada.joins();
      await ada.player.page.locator(`[data-screen="${refused}"], [data-testid="refused"]:not(:empty)`).waitFor();
      await shoot(ada.player, size, `refused-${refused}`);
    }
    await ada.player.page.goto(`${server.address}/lobby`);
    await ada.element("lobby-empty").waitFor();
    await server.kill();
    await ada.element("gone").waitFor();
    await shoot(ada.player, size, "lobby-gone");
  });
}
