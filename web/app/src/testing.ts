// What tests and the console may look at: the latest of everything, read-only.

import { sharedNow } from "./worker/messages";
import type { Play } from "./game/play.svelte";

export function expose(play: Play): void {
  const latest = {
    get status() {
      return play.status;
    },
    get hud() {
      return play.hud;
    },
    /** The player's characters and which of them plays; never the token. */
    get characters() {
      return { active: play.active, all: play.characters };
    },
    get diagnostics() {
      return play.diagnostics;
    },
    get tick() {
      return play.tick;
    },
    /** What is drawn at this moment, in the game's own units. */
    get shapes() {
      return play.motion.at(sharedNow())?.shapes ?? [];
    },
    get ghost() {
      return play.motion.at(sharedNow())?.ghost ?? null;
    },
    /** Where a place of the game is on the page, for who wants to click there. */
    onPage: (x: number, y: number) => play.onpage?.({ x, y }) ?? null,
  };
  Object.assign(window, { sametick: latest });
}
