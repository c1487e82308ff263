// A story is a test with a server, players with browsers, and perhaps a proxy between them. All of it is always
// removed afterwards; if it fails, screenshots and logs are kept.

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, test } from "node:test";
import { chromium } from "playwright-core";
import { Devtools } from "./devtools.mjs";
import { Player } from "./player.mjs";
import { Proxy } from "./proxy.mjs";
import { Server } from "./server.mjs";
import { LIMIT_MS } from "./until.mjs";

export const OUT = process.env.SAMETICK_E2E_OUT ?? "e2e-out";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const DESKTOP = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

let browser;
after(() => browser?.close());

async function theBrowser() {
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  return browser;
}

/** A story that takes longer hangs: every wait in it has a limit of its own. */
const STORY_MS = 300_000;

export function story(name, tell) {
  test(name, { timeout: STORY_MS }, async () => {
    const stage = new Stage(name);
    try {
      await tell(stage);
    } catch (error) {
      const folder = await stage.keep();
      throw new Error(`${error.message}\nscreenshots and logs: ${folder}`, { cause: error });
    } finally {
      await stage.clear();
    }
  });
}

export class Stage {
  #name;
  #players = [];
  #contexts = [];
  #tabs = [];
  #servers = [];
  #proxies = [];

  constructor(name) {
    this.#name = name;
  }

  async server(options) {
    const server = await Server.start(options);
    this.#servers.push(server);
    return server;
  }

  async proxy(server) {
    const proxy = await Proxy.start(server.ports.web);
    this.#proxies.push(proxy);
    return proxy;
  }

  /** A proxy to a server and all its hosts, which can be cut. */
  async network(server) {
    const proxies = await Promise.all([server.ports.web, ...server.ports.hosts].map((port) => Proxy.start(port)));
    this.#proxies.push(...proxies);
    return {
      cut: () => proxies.forEach((proxy) => proxy.cut()),
      heal: () => proxies.forEach((proxy) => proxy.heal()),
    };
  }

  /** A new player, at this address. `look`: size, colour scheme and the like, as for a browser context. */
  async player(name, address, look = {}) {
    const context = await (await theBrowser()).newContext({ viewport: DESKTOP, ...look });
    context.setDefaultTimeout(LIMIT_MS);
    this.#contexts.push(context);
    const player = new Player(name, await context.newPage()).listen();
    this.#players.push(player);
    await player.page.goto(address);
    return player;
  }

  /** A player whose browser no test driver keeps awake: a page that can be hidden and frozen, but not clicked on. */
  async loneTab(name, address) {
    const devtools = await Devtools.start(CHROMIUM, FLAGS);
    this.#tabs.push(devtools);
    const player = new Player(name, await devtools.open(address));
    this.#players.push(player);
    return player;
  }

  async keep() {
    const folder = path.join(OUT, this.#name.replaceAll(/[^a-z0-9]+/gi, "-"));
    await mkdir(folder, { recursive: true });
    for (const player of this.#players) {
      const file = (ending) => path.join(folder, `${player.name}.${ending}`);
      const seen = await player.look().catch((error) => ({ error: String(error) }));
      await writeFile(file("txt"), `${JSON.stringify(seen, null, 2)}\n${player.console.join("\n")}\n`);
      await player.page.screenshot?.({ path: file("png"), timeout: 5_000 }).catch(() => {});
    }
    for (const [at, server] of this.#servers.entries()) {
      await writeFile(path.join(folder, `server-${at}.txt`), server.said);
    }
    return folder;
  }

  async clear() {
    for (const things of [this.#contexts, this.#tabs, this.#proxies, this.#servers]) {
      await Promise.allSettled(things.map((thing) => thing.close()));
    }
  }
}
