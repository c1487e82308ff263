// Read-only access for tests and the console: the latest state.

import { sharedNow } from "./worker/messages";
import type { Play } from "./game/play.svelte";
import type { StaySeen } from "./lobby/stay";

/** Until the returned function is called. */
export function expose(play: Play): () => void {
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
    /** Where a place of the game is on the page, for clicks. */
    onPage: (x: number, y: number) => play.onpage?.({ x, y }) ?? null,
  };
  return show(latest);
}

/** What a session page knows, until the returned function is called; never the tokens. */
export function exposeSession(seen: () => StaySeen): () => void {
  return show({
    get session() {
      const { view, you, state, address } = seen();
      return { view, you, state, address };
    },
  });
}

/** Beside what is shown already. */
function show(latest: object): () => void {
  const shown: Record<string, unknown> = (window as { sametick?: Record<string, unknown> }).sametick ?? {};
  const descriptors = Object.getOwnPropertyDescriptors(latest) as Record<string, PropertyDescriptor>;
  Object.defineProperties(shown, descriptors);
  Object.assign(window, { sametick: shown });
  return () => {
    for (const [name, { get, value }] of Object.entries(descriptors)) {
      const now = Object.getOwnPropertyDescriptor(shown, name);
      // A later page shows its own.
      if (now?.get === get && now?.value === value) delete shown[name];
    }
  };
}
