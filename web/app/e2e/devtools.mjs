// A browser without a test driver, controlled over its debugging pipe. A driver keeps every page visible and awake;
// here a page can be hidden and frozen as a browser does it to a background tab.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

export class Devtools {
  #child;
  #folder;
  #next = 0;
  #waiting = new Map();
  #rest = "";

  static async start(program, flags) {
    const browser = new Devtools();
    browser.#folder = await mkdtemp(path.join(os.tmpdir(), "sametick-profile-"));
    const own = ["--headless", "--remote-debugging-pipe", `--user-data-dir=${browser.#folder}`, "--no-first-run"];
    browser.#child = spawn(program, [...own, ...flags, "about:blank"], {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    });
    process.once("exit", () => browser.#child.kill("SIGKILL"));
    browser.#child.stdio[4].setEncoding("utf8").on("data", (text) => browser.#hear(text));
    return browser;
  }

  /** A tab at this address. */
  async open(address) {
    const { targetId } = await this.send("Target.createTarget", { url: address });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    return new Tab(this, sessionId);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.#next;
    this.#child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((done, failed) => this.#waiting.set(id, { method, done, failed }));
  }

  async close() {
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  #hear(text) {
    const messages = (this.#rest + text).split("\0");
    this.#rest = messages.pop() ?? "";
    for (const message of messages) {
      const { id, result, error } = JSON.parse(message);
      const asked = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) asked?.failed(new Error(`${asked.method}: ${error.message}`));
      else asked?.done(result);
    }
  }
}

class Tab {
  #browser;
  #session;

  constructor(browser, session) {
    this.#browser = browser;
    this.#session = session;
  }

  send(method, params) {
    return this.#browser.send(method, params, this.#session);
  }

  async evaluate(body) {
    const asked = { expression: `(${body})()`, returnByValue: true };
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", asked);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
}
