// One stay in a session, as the game page shows it: what the worker reports, and what the person does.

import type { ServerInfo } from "../api";
import { ownBuilds, takeEngine, type Engine } from "../engine";
import { History } from "../panel/history";
import type { Lag } from "../panel/lag";
import { settings } from "../settings.svelte";
import type { Diagnostics, FromWorker, Hud, JoinOptions, ShownStatus, TickMessage } from "../worker/messages";
import { sharedNow } from "../worker/messages";
import { Effects } from "./effects";
import { Motion, shapesOf } from "./motion";
import type { Wanted } from "./controls";

const SETTLING_MS = 3_000;

export class Play {
  status: ShownStatus | null = $state.raw(null);
  hud: Hud | null = $state.raw(null);
  diagnostics: Diagnostics | null = $state.raw(null);
  /** Whether figures mean something yet: right after joining, everything arrives late and early. */
  settled = $state(false);
  /** What went wrong inside the worker; nothing moves any more. */
  crash: string | null = $state(null);
  /** Whether there is something to draw. */
  started = $state(false);
  /** The server came back with another build. */
  outdated = $state(false);
  ghost = $state(false);
  /** What this browser's link is made to suffer. */
  lag: Lag = $state.raw({ rtt_ms: 0, jitter_ms: 0, loss_percent: 0 });

  readonly motion = new Motion();
  readonly effects = new Effects();
  readonly history = new History();
  tick = 0;
  /** Hears of events as they are shown. */
  onevents: ((events: number) => void) | undefined;

  private readonly engine: Engine = takeEngine();
  private settling: ReturnType<typeof setTimeout> | undefined;
  /** Begins the game once, without being asked to press anything. */
  private begin: boolean;

  constructor(
    readonly options: JoinOptions,
    server: ServerInfo,
    begin: boolean,
  ) {
    this.begin = begin;
    this.engine.listener = (message) => this.hear(message);
    // A closed tab says goodbye: over WebTransport nobody else does, and its paddle would stand still for a while.
    addEventListener("pagehide", this.goodbye);
    const { websocket, webtransport } = server;
    this.engine.send({
      kind: "join",
      options: $state.snapshot(options) as JoinOptions,
      doors: { websocket: { ...websocket }, webtransport: webtransport && { ...webtransport } },
    });
  }

  controls({ held, x, y }: Wanted): void {
    this.engine.send({ kind: "controls", held, x, y });
  }

  press(): void {
    this.engine.send({ kind: "press" });
  }

  netem(profile: string): void {
    this.engine.send({ kind: "netem", profile });
  }

  drop(for_ms: number): void {
    this.engine.send({ kind: "drop", for_ms });
  }

  showGhost(on: boolean): void {
    this.ghost = on;
    this.engine.send({ kind: "ghost", on });
  }

  /** Says goodbye, so that the others see at once that the seat is free. */
  leave(): void {
    removeEventListener("pagehide", this.goodbye);
    this.engine.send({ kind: "leave" });
    this.engine.listener = undefined;
    clearTimeout(this.settling);
    const { engine } = this;
    setTimeout(() => engine.stop(), 2_500);
  }

  private readonly goodbye = (): void => {
    this.engine.send({ kind: "leave" });
    // A page that the browser kept and shows again begins anew.
    addEventListener("pageshow", () => location.reload(), { once: true });
  };

  private hear(message: FromWorker): void {
    // What bots played in this engine before is not ours; of our own session a status comes first.
    if (this.status === null && (message.kind === "tick" || message.kind === "hud")) return;
    switch (message.kind) {
      case "tick":
        return this.ticked(message);
      case "status":
        return this.changed(message.status);
      case "hud":
        this.hud = message.hud;
        return this.beginOnce();
      case "diagnostics":
        this.diagnostics = message.diagnostics;
        return this.history.add(message.diagnostics, message.at_ms);
      case "server":
        return void this.compare(message.answer as ServerInfo);
      case "crash":
        this.crash = message.why;
        return this.engine.stop();
    }
  }

  private ticked(message: TickMessage): void {
    this.tick = message.tick;
    this.started = true;
    this.motion.add(message);
    if (!message.events || document.hidden) return;
    this.effects.add(message.events, shapesOf(message.frame), sharedNow());
    this.onevents?.(message.events);
  }

  private changed(status: ShownStatus): void {
    this.status = status;
    if (status.ticks_per_second > 0) this.motion.ticks_per_second = status.ticks_per_second;
    const works = status.state === "playing" || status.state === "watching";
    if (works && status.route) settings.route = status.route;
    if (!works) {
      clearTimeout(this.settling);
      this.settling = undefined;
      this.settled = false;
    } else {
      this.settling ??= setTimeout(() => (this.settled = true), SETTLING_MS);
    }
    this.beginOnce();
  }

  private beginOnce(): void {
    if (!this.begin || this.status?.state !== "playing" || this.hud?.phase !== "waiting") return;
    this.begin = false;
    this.press();
  }

  private async compare(server: ServerInfo): Promise<void> {
    const build = server.games.find(({ name }) => name === this.options.game)?.build;
    const own = (await ownBuilds())[this.options.game];
    this.outdated = build !== own;
  }
}
