// Joining a session: asks the server, checks key and build, then plays. Retries while the server does not answer.

import { Locked, readServer, readSessions } from "../api";
import { findCopy } from "../copies";
import { ownBuilds } from "../engine";
import type { GameOptions } from "../place";
import { settings } from "../settings.svelte";
import type { JoinOptions, RouteName } from "../worker/messages";
import { Play } from "./play.svelte";

export type Step =
  | { at: "asking" }
  | { at: "gone"; retry_at_ms: number }
  | { at: "locked" }
  | { at: "sign-in" }
  | { at: "unknown" }
  | { at: "outdated" }
  | { at: "broken"; why: string }
  | { at: "playing"; play: Play };

const RETRIES_MS = [1_000, 2_000, 4_000, 8_000];

export class Entry {
  step: Step = $state.raw({ at: "asking" });
  private timer: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private over = false;
  /** Counts starts, so that an outdated one does nothing. */
  private run = 0;

  constructor(
    private readonly game: string,
    private readonly session: string,
    private readonly options: GameOptions,
    private begin: boolean,
  ) {
    void this.start();
  }

  /** Starts over: the first time, and on request. */
  start = async (): Promise<void> => {
    this.end();
    this.over = false;
    const run = ++this.run;
    this.step = { at: "asking" };
    const step = await this.next();
    if (this.over || run !== this.run) return leave(step);
    this.step = step;
    if (step.at === "gone") this.timer = setTimeout(this.start, step.retry_at_ms - Date.now());
  };

  end(): void {
    this.over = true;
    clearTimeout(this.timer);
    leave(this.step);
  }

  private async next(): Promise<Step> {
    try {
      const server = await readServer();
      if (server.locked && !(await this.keyIsGood())) return { at: "locked" };
      this.failures = 0;
      const known = server.games.find(({ name }) => name === this.game);
      let builds;
      try {
        builds = await ownBuilds();
      } catch (error) {
        return { at: "broken", why: error instanceof Error ? error.message : String(error) };
      }
      const own = builds[this.game];
      if (!known || !own) return { at: "unknown" };
      if (known.build !== own) return { at: "outdated" };
      const has_token = takeToken(server.sign_in);
      if (server.sign_in && this.options.mode === "room" && !has_token) return { at: "sign-in" };
      const key = server.locked ? settings.key : null;
      const bring = await this.copy(own);
      const play = new Play(this.join(key, server.webtransport !== null), server, this.begin, bring);
      return { at: "playing", play };
    } catch {
      const delay_ms = RETRIES_MS[this.failures++] ?? 8_000;
      return { at: "gone", retry_at_ms: Date.now() + delay_ms };
    }
  }

  /** The copy that the session begins with, if the server has nothing of it; none if it does not fit. */
  private async copy(build: string): Promise<Uint8Array<ArrayBuffer> | null> {
    const { bring, mode } = this.options;
    if (!bring || mode !== "lockstep") return null;
    const copy = await findCopy(bring).catch(() => undefined);
    const fits = copy && copy.build === build && copy.game === this.game && copy.session === this.session;
    return fits ? copy.bytes : null;
  }

  private async keyIsGood(): Promise<boolean> {
    if (!settings.key) return false;
    try {
      await readSessions(settings.key);
      return true;
    } catch (error) {
      if (error instanceof Locked) return false;
      throw error;
    }
  }

  private join(key: string | null, has_webtransport: boolean): JoinOptions {
    const { mode, players, bots, listed, scenario, seed, watch, route } = this.options;
    const routes = routesToTry(route, settings.route, has_webtransport && canWebTransport());
    const [game, session, name] = [this.game, this.session, settings.name];
    return { game, mode, session, name, routes, key, players, bots, listed, scenario, seed, watch, pass: null };
  }
}

/** Whether there is a token: the stored one or, where players sign in, one from the site around the page. */
export function takeToken(is_signed_in: boolean): boolean {
  if (is_signed_in && settings.offered_token) settings.token = settings.offered_token;
  settings.offered_token = null;
  return settings.token !== null;
}

function leave(step: Step): void {
  if (step.at === "playing") step.play.leave();
}

export function canWebTransport(): boolean {
  return isSecureContext && "WebTransport" in globalThis;
}

/** Only the forced route; otherwise all possible routes, the one that worked last first. */
export function routesToTry(forced: RouteName | null, last: RouteName | null, webtransport: boolean): RouteName[] {
  if (forced) return [forced];
  if (!webtransport) return ["websocket"];
  return last === "websocket" ? ["websocket", "webtransport"] : ["webtransport", "websocket"];
}
