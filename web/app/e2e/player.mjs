// A player with a browser: the page, what it shows, and what the player presses.

import { until } from "./until.mjs";

export class Player {
  console = [];

  constructor(name, page) {
    this.name = name;
    this.page = page;
  }

  /** Keeps what the page says to the console. */
  listen() {
    this.page.on("console", (message) => this.console.push(`${message.type()}: ${message.text()}`));
    this.page.on("pageerror", (error) => this.console.push(`uncaught: ${error.stack ?? error}`));
    return this;
  }

  /** The page's view of the session at one moment. Empty before a game is loaded. */
  look() {
    return this.page.evaluate(() => {
      const { status, hud, diagnostics, tick, session } = window.sametick ?? {};
      return { status, hud, diagnostics, tick, session, visible: !document.hidden };
    });
  }

  /** Waits until the page's view fits the condition, and resolves with it. */
  async sees(what, is_so, options) {
    let seen;
    try {
      return await until(`${this.name} sees ${what}`, async () => {
        seen = await this.look();
        return is_so(seen) && seen;
      }, options);
    } catch (error) {
      throw new Error(`${error.message}; sees ${JSON.stringify(seen)}`, { cause: error });
    }
  }

  /** In the game, and hearing from it: ticks go on, and hashes are compared with the others'. */
  async plays(options) {
    const from = await this.sees("itself play", ({ status }) => status?.state === "playing", options);
    await this.goesOn(from, options);
    return from;
  }

  /** Ticks go on from what was seen before. */
  goesOn(before, options) {
    const past = (before.tick ?? 0) + 30;
    return this.sees(`tick ${past}`, ({ status, tick }) => status?.state === "playing" && tick > past, options);
  }

  /** A state after what was seen before is the same for all players. */
  agrees(before, options) {
    const past = before.diagnostics?.agreed ?? 0;
    return this.sees(
      `agreement on a state after tick ${past}`,
      ({ diagnostics }) => diagnostics?.agreed > past && diagnostics.mismatches === 0,
      options,
    );
  }

  element(id) {
    return this.page.getByTestId(id);
  }

  /** The notice of this name lies over the court. */
  noticed(name, options) {
    return this.page.locator(`[data-notice="${name}"]`).waitFor(options);
  }

  /**
   * Presses the button that begins and serves, and otherwise lets balls pass, until a point is made and confirmed: the state on screen
   * is a prediction, which a late input changes.
   */
  async pressUntilScored(before = 0) {
    let shownAt = null;
    return until(`a point is made in ${this.name}'s game`, async () => {
      const { hud, tick, diagnostics } = await this.look();
      if (!hud) return false;
      if (points(hud) > before) {
        shownAt ??= tick;
        return diagnostics.confirmed >= shownAt && hud;
      }
      shownAt = null;
      if (hud.phase === "waiting" || hud.phase === "serving") await this.page.keyboard.press("Space");
      return false;
    });
  }
}

export function points(hud) {
  return hud.seats.reduce((sum, { score }) => sum + score, 0);
}

export function scores(hud) {
  return hud.seats.map(({ score }) => score).join(":");
}
