// What tests and the console may look at: the latest of everything, read-only.

import type { Play } from "./game/play.svelte";

export function expose(play: Play): void {
  const latest = {
    get status() {
      return play.status;
    },
    get hud() {
      return play.hud;
    },
    get diagnostics() {
      return play.diagnostics;
    },
    get tick() {
      return play.tick;
    },
  };
  Object.assign(window, { sametick: latest });
}
