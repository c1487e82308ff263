// A server with a passphrase: players who know it can join, and so can invited ones.

import assert from "node:assert/strict";
import { story } from "./story.mjs";

const PASSPHRASE = "open sesame, please";

story("a passphrase is asked for, refused if wrong, and remembered if right", async (stage) => {
  const server = await stage.server({ secret: PASSPHRASE });
  const ada = await stage.player("ada", `${server.address}/`);
  await ada.element("passphrase-field").fill("something else");
  await ada.element("passphrase-send").click();
  await ada.page.getByText("not this server's passphrase").waitFor();
  await ada.element("passphrase-field").fill(PASSPHRASE);
  await ada.element("passphrase-send").click();
  await ada.element("game-pong").getByTestId("with-a-bot").click();
  await ada.plays();
  await ada.page.reload();
  await ada.plays();
});

story("an invitation brings its key along, and takes it out of the address", async (stage) => {
  const server = await stage.server({ secret: PASSPHRASE });
  const ada = await stage.player("ada", `${server.address}/play/pong/den?bots=no`);
  await ada.element("passphrase-field").fill(PASSPHRASE);
  await ada.element("passphrase-send").click();
  await ada.sees("a seat", ({ status }) => status?.seat != null);
  await ada.element("invite").click();
  const link = await ada.element("invite-link").inputValue();
  assert.match(link, /#key=[0-9a-f]{64}$/);
  const bob = await stage.player("bob", link);
  await bob.plays();
  assert.doesNotMatch(bob.page.url(), /key/);
});
