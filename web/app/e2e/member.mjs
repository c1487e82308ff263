// A member of a lobby session: what they press on its page, and what they see there.

import { PROXY_IP, SERVER_IP } from "./ports.mjs";
import { until } from "./until.mjs";

export class Member {
  constructor(player) {
    this.player = player;
  }

  element(id) {
    return this.player.element(id);
  }

  /** Makes a session from the lobby. `choose`: ids of choices to press in the form. */
  async creates({ password = "", choose = [], name = "", difficulty = null } = {}) {
    await this.element("create-open").click();
    if (name) await this.element("create-name").fill(name);
    for (const id of choose) await this.element(id).check({ force: true });
    if (difficulty !== null) await this.element("create-difficulty").fill(String(difficulty));
    await this.element("create-password").fill(password);
    await this.element("create-submit").click();
    await this.gathers();
  }

  /** At the form to join a session. */
  async joins(password = "") {
    if (password) await this.element("password").fill(password);
    await this.element("join-submit").click();
  }

  /** Opens the link of a session that they were in, and is in it again: at once if their seat waits, else by the door. */
  async opens(link, phase) {
    await this.player.page.goto(link);
    const door = this.element("join-submit");
    await until(`${this.player.name} is at the door or in the session`, async () => {
      return (await door.isVisible()) || (await this.player.look()).session?.state.at === "in";
    });
    if (await door.isVisible()) await door.click();
    await this.isIn(phase);
  }

  async gathers() {
    await this.element("gathering").waitFor();
    return this.element("share-link").inputValue();
  }

  async sits(seat) {
    await this.element(`seat-${seat}`).click();
    await this.player.sees(`itself at seat ${seat}`, ({ session }) => own(session)?.seat === seat);
  }

  async isReady() {
    await this.element("ready").click();
    await this.player.sees("that it is ready", ({ session }) => own(session)?.ready);
  }

  /** In the session again, and in this phase. */
  isIn(phase, options) {
    return this.player.sees(`itself in the session, ${phase}`, ({ session }) => session?.state.at === "in" && session.view.phase === phase, options);
  }

  /** The token of their seat. It changes with every return, which is too short to be seen otherwise. */
  async token() {
    const kept = await this.player.page.evaluate(() => Object.entries(sessionStorage).find(([key]) => key.startsWith("sametick.session."))?.[1]);
    return kept && JSON.parse(kept).token;
  }

  /** They have been away since they had this token. */
  async returns(token, options) {
    await until(`${this.player.name} comes back`, async () => {
      const now = await this.token();
      return now && now !== token;
    }, options);
  }

  /** The screen of this name is shown. */
  async sent(name, options) {
    const screen = this.player.page.locator(`[data-screen="${name}"]`);
    await screen.waitFor(options);
    return screen.innerText();
  }
}

/** The session's own record of this member. */
export function own(session) {
  return session?.view?.people.find(({ player }) => player === session.you);
}

/** The same link for a player who does not come through the proxy. */
export function direct(link) {
  return link.replace(PROXY_IP, SERVER_IP);
}
