// The time from opening a link for the first time to playing. Measured and printed; a busy machine is no
// fault of the page's.

import { test } from "node:test";
import { Stage } from "../story.mjs";

const TIMES = 3;

test("the first playable frame", { timeout: 60_000 }, async (t) => {
  const stage = new Stage("first frame");
  try {
    const server = await stage.server();
    const waited_ms = [];
    for (let time = 0; time < TIMES; time++) {
      const ada = await stage.player(`ada-${time}`, "about:blank");
      await ada.page.addInitScript(markPlayable);
      await ada.page.goto(`${server.address}/play/pong/den-${time}`);
      await ada.plays();
      waited_ms.push(await ada.page.evaluate(() => performance.getEntriesByName("playable")[0].startTime));
    }
    t.diagnostic(`first playable frame after ${waited_ms.map(Math.round).join(", ")} ms, nothing cached`);
  } finally {
    await stage.clear();
  }
});

/** Runs in the page before anything else: marks the first frame that is drawn while the game is on. */
function markPlayable() {
  const look = () => {
    const { status, tick } = window.sametick ?? {};
    if (status?.state === "playing" && tick > 0) performance.mark("playable");
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}
