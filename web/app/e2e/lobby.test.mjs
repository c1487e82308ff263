// Players find a session, take seats, play, lose their connection, return, and play again.

import assert from "node:assert/strict";
import { Member, direct, own } from "./member.mjs";
import { Player } from "./player.mjs";
import { story } from "./story.mjs";

const PASSWORD = "open sesame";

async function comes(stage, name, address) {
  return new Member(await stage.player(name, address));
}

/** Two players in a game; the first created the session, and connects through the proxy. */
async function twoPlay(stage, form = {}) {
  const server = await stage.server();
  const network = await stage.network(server);
  const ada = await comes(stage, "ada", `${server.proxied}/lobby`);
  // Without an end, so that it is not over before the story is.
  await ada.creates({ choose: ["scenario-practice"], ...form });
  const link = await ada.gathers();
  const bob = await comes(stage, "bob", direct(link));
  await bob.joins(form.password);
  await bob.gathers();
  await ada.sits(0);
  await bob.sits(1);
  await ada.isReady();
  await bob.isReady();
  await ada.element("start").click();
  const before = await Promise.all([ada, bob].map(async ({ player }) => player.agrees(await player.plays())));
  assert.deepEqual(before.map(({ status }) => status.seat), [0, 1]);
  return { server, network, ada, bob, link, before };
}

/** They have been away since they had this token. */
async function comesBack(member, token, seat, before, options) {
  await member.returns(token, options);
  await isBack(member, seat, before, options);
}

/** In the same game as before, on the same seat, and it goes on. */
async function isBack({ player }, seat, before, options) {
  const now = await player.sees("itself play again", ({ status, session }) => status?.state === "playing" && session.state.at === "in", options);
  assert.deepEqual([now.status.seat, own(now.session).seat], [seat, seat]);
  assert.equal(now.session.view.round, 1);
  assert.ok(now.tick > before.diagnostics.agreed, `${now.tick} follows ${before.diagnostics.agreed}`);
  await player.goesOn(now);
  await player.agrees(await player.look());
}

story("a session with a password: no stranger tells a wrong one from no session at all", async (stage) => {
  const server = await stage.server();
  const ada = await comes(stage, "ada", `${server.address}/lobby`);
  await ada.element("lobby-empty").waitFor();
  await ada.creates({ password: PASSWORD, name: "Tuesday" });
  const link = await ada.gathers();

  const bob = await comes(stage, "bob", link);
  await bob.element("password").fill("open");
  await ada.element("change-open").click();
  await ada.element("create-name").fill("Wednesday");
  await ada.element("change-submit").click();
  await bob.player.page.getByRole("heading", { name: "Wednesday" }).waitFor();
  await bob.player.page.keyboard.type(" barley");
  assert.equal(await bob.element("password").inputValue(), "open barley");
  await bob.element("join-submit").click();
  const wrong = await bob.sent("not-found");
  const nowhere = await comes(stage, "cyd", link.replace(/.$/, (digit) => (digit === "0" ? "1" : "0")));
  await nowhere.element("has-password").click();
  await nowhere.joins("open barley");
  assert.equal(await nowhere.sent("not-found"), wrong);

  await bob.joins(PASSWORD);
  await bob.gathers();
  await ada.player.page.locator('[data-testid="roster-row"]').nth(1).waitFor();
  await bob.element("chat-input").fill("hello");
  await bob.element("chat-send").click();
  await ada.element("chat-line").getByText("hello").waitFor();
  const dan = await comes(stage, "dan", link);
  await dan.joins(PASSWORD);
  await dan.sent("full");
});

story("two play, one is cut off and returns to the same seat", async (stage) => {
  const { network, ada, bob, before } = await twoPlay(stage, { password: PASSWORD });
  network.cut();
  await ada.element("countdown").waitFor();
  await bob.player.sees("ada away", ({ session }) => session.view.people.some(({ away }) => away));
  network.heal();
  await isBack(ada, 0, before[0]);
  await bob.player.sees("ada back", ({ session }) => !session.view.people.some(({ away }) => away));
});

story("a player who closed the tab of a full game returns from the lobby and the first page without the password", async (stage) => {
  const { server, ada, bob, before, link } = await twoPlay(stage, { password: PASSWORD });
  const context = ada.player.page.context();
  const opens = async (name, address) => {
    const page = await context.newPage();
    const member = new Member(new Player(name, page).listen());
    await page.goto(address);
    return member;
  };
  /** Another tab, once the last one is closed. */
  const closes = async (member, name, address) => {
    await member.player.page.close();
    return opens(name, address);
  };
  const cyd = await comes(stage, "cyd", `${server.address}/lobby`);
  await cyd.element("lobby-row").getByText("Full").waitFor();

  let again = await closes(ada, "ada in the lobby", `${server.proxied}/lobby`);
  await again.element("return").getByText("Return to your game").waitFor();
  await again.element("row-return").click();
  await isBack(again, 0, before[0]);
  again = await closes(again, "ada on the first page", `${server.proxied}/`);
  await again.element("return-now").click();
  await isBack(again, 0, before[0]);
  again = await closes(again, "ada with the link", link);
  await isBack(again, 0, before[0]);

  // While that tab is open, another one asks before it takes the seat, but not for the password.
  const second = await opens("ada in a second tab", link);
  await second.element("door-elsewhere").waitFor();
  assert.equal(await second.element("password").count(), 0);
  assert.equal((await again.player.look()).session.state.at, "in");
  await second.joins();
  await isBack(second, 0, before[0]);
  await again.sent("elsewhere");
  // The tab that was taken over from does not give the seat up by being closed.
  const last = await closes(again, "ada in a third tab", `${server.proxied}/lobby`);
  assert.equal(await last.element("return").count(), 0);
  await last.element("row-return").waitFor();
  await second.element("leave").click();
  await second.element("leave-sure").click();
  await last.element("row-return").waitFor({ state: "detached" });
  await bob.player.sees("itself alone", ({ session }) => session.view.people.length === 1);
});

story("a host is killed in the middle of a game, then the gateway: everybody is back, or has not noticed", async (stage) => {
  const { server, ada, bob, link, before } = await twoPlay(stage);
  const port = hostOf(await ada.player.look());
  const tokens = await tokensOf([ada, bob]);
  await server.endHost(port);
  await comesBack(ada, tokens[0], 0, before[0]);
  await comesBack(bob, tokens[1], 1, before[1]);

  await server.kill();
  const during = await Promise.all([ada, bob].map(({ player }) => player.look()));
  await Promise.all([ada.player.goesOn(during[0]), bob.player.goesOn(during[1])]);
  await server.run();
  const cyd = await comes(stage, "cyd", `${server.address}/lobby`);
  await cyd.element("lobby-row").waitFor();
  await cyd.player.page.goto(direct(link));
  await cyd.joins();
  await cyd.sent("full");
  const still = await Promise.all([ada, bob].map(({ player }) => player.look()));
  assert.deepEqual(still.map(({ session }) => session.state.at), ["in", "in"]);

  // Both at once: the host is not restarted until the gateway is back.
  const later = await tokensOf([ada, bob]);
  await server.kill();
  await server.endHost(port);
  await ada.element("countdown").waitFor();
  await server.run();
  await comesBack(ada, later[0], 0, still[0]);
  await comesBack(bob, later[1], 1, still[1]);
});

function tokensOf(members) {
  return Promise.all(members.map((member) => member.token()));
}

/** The port of the host of a member's session. */
function hostOf({ session }) {
  return Number(session.address.split(":").at(-1));
}

story("a host that is asked to end hands its session to another one, and the game goes on there", async (stage) => {
  const { server, ada, bob, link, before } = await twoPlay(stage);
  const port = hostOf(before[0]);
  await server.endHost(port, "SIGTERM");
  // A player who reloads the page meanwhile finds the new host, too.
  await bob.player.page.reload();
  for (const [seat, member] of [ada, bob].entries()) {
    await member.player.sees("another host", ({ session }) => session?.view && hostOf({ session }) !== port);
    await isBack(member, seat, before[seat]);
    assert.notEqual(direct(member.player.page.url()), direct(link));
  }
  await bob.player.page.reload();
  await isBack(bob, 1, before[1]);
});

story("a reload comes back to the seat, and a second tab takes over until it is asked not to", async (stage) => {
  const server = await stage.server();
  const ada = await comes(stage, "ada", `${server.address}/lobby`);
  await ada.creates();
  const link = await ada.gathers();
  await ada.sits(1);
  await ada.player.page.reload();
  await ada.gathers();
  await ada.player.sees("its seat", ({ session }) => own(session)?.seat === 1);

  const page = await ada.player.page.context().newPage();
  const second = new Member(new Player("ada again", page).listen());
  await page.goto(link);
  await second.joins();
  await second.gathers();
  await ada.sent("elsewhere");
  await second.player.sees("the same seat", ({ session }) => own(session)?.seat === 1);
  await ada.element("way-here").click();
  await ada.gathers();
  await second.sent("elsewhere");
  const token = await ada.token();
  const kept = await page.evaluate(() => JSON.stringify({ ...localStorage }));
  assert.ok(token && !kept.includes(token), "what brings a tab back is that tab's alone");
});

story("a button acts once: it takes a seat, and a player who comes back to the page is asked", async (stage) => {
  const server = await stage.server();
  const ada = await comes(stage, "ada", `${server.address}/lobby`);
  await ada.creates();
  const bob = await comes(stage, "bob", `${server.address}/lobby`);
  await bob.element("join").click();
  await bob.gathers();
  await bob.element("seat-0").dblclick();
  await bob.element("chat-input").fill("I sit");
  await bob.element("chat-send").click();
  await bob.element("chat-line").getByText("I sit").waitFor();
  assert.equal(own((await bob.player.look()).session).seat, 0);
  await bob.element("stand").click();
  await bob.player.sees("itself stand", ({ session }) => own(session).seat === null);
  await bob.element("leave").click();
  await bob.element("lobby-row").waitFor();
  await bob.player.page.goBack();
  await bob.sent("door");
  await bob.player.page.reload();
  await bob.sent("door");
});

story("the creator changes a session, kicks a player, and bans them", async (stage) => {
  const server = await stage.server();
  const ada = await comes(stage, "ada", `${server.address}/lobby`);
  await ada.creates();
  const link = await ada.gathers();
  const bob = await comes(stage, "bob", link);
  await bob.joins();
  await bob.gathers();
  await bob.sits(0);
  await ada.element("change-open").click();
  await ada.element("seats-2").check({ force: true });
  await ada.element("change-submit").click();
  await bob.element("seat-3").waitFor();

  await ada.element("kick-open").click();
  await ada.element("kick").click();
  await bob.sent("kicked");
  await bob.element("way-again").click();
  await bob.gathers();
  await ada.element("kick-open").click();
  await ada.element("ban").click();
  await bob.sent("banned");
  await bob.player.page.goto(link);
  await bob.joins();
  await bob.sent("banned");
});

story("the lobby lists what was asked for, and says so while the gateway is gone", async (stage) => {
  const server = await stage.server();
  const ada = await comes(stage, "ada", `${server.address}/lobby`);
  await ada.creates({ name: "Tuesday" });
  const cyd = await comes(stage, "cyd", `${server.address}/lobby`);
  await cyd.element("row-name").getByText("Tuesday").waitFor();
  await cyd.element("filter-game").selectOption("arena");
  await cyd.element("lobby-empty").waitFor();
  await cyd.element("filter-none").click();
  await cyd.element("lobby-row").waitFor();
  await server.kill();
  await cyd.element("gone").waitFor();
  await cyd.element("create-open").click();
  await cyd.element("create-submit").click();
  await cyd.element("create-submit").getByText("Waiting for the server").waitFor();
  await cyd.element("create-panel-close").click();
  await ada.element("chat-input").fill("still here");
  await ada.element("chat-send").click();
  await ada.element("chat-line").getByText("still here").waitFor();
  await server.run();
  await cyd.element("gone").waitFor({ state: "detached" });
  await cyd.element("row-name").getByText("Tuesday").waitFor();
  assert.equal(await cyd.element("lobby-row").count(), 1);
  assert.match(cyd.player.page.url(), /\/lobby$/);
});
