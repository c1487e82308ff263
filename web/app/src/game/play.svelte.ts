// State of one game page: reports of the worker, and actions of the player.

import type { ServerInfo } from "../api";
import { ownBuilds, takeEngine, type Engine } from "../engine";
import { History } from "../panel/history";
import type { Lag } from "../panel/lag";
import { explained } from "../panel/room";
import { settings } from "../settings.svelte";
import type {
  Character,
  Diagnostics,
  Doors,
  FromWorker,
  Hud,
  JoinOptions,
  ShownStatus,
  TickMessage,
  Tool,
  Who,
} from "../worker/messages";
import { sharedNow } from "../worker/messages";
import type { Point } from "./canvas";
import { Claims } from "./claims";
import { Motion, type Shape } from "./motion";
import { Oneself } from "./oneself";
import { keptText } from "./words";

const SETTLING_MS = 3_000;

/** Input of the player from keyboard, touch and others. */
export interface Wanted {
  held: number;
  /** The pointed place, in the game's own units; NaN if none. */
  x: number;
  y: number;
  tool?: Tool;
}

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
  /** The player's characters; none where there are no such things. */
  characters: Character[] = $state.raw([]);
  /** Which of them plays. */
  active = $state("");
  /** Why its token was refused: the player is new. */
  bad_token: string | null = $state(null);
  /** Another page of this browser plays in this room, and so this one does not. */
  elsewhere = $state(false);
  /** The text about a requested copy, until the next one. */
  kept: { text: string; at_ms: number } | null = $state.raw(null);
  /** The simulated network conditions of this browser's link. */
  lag: Lag = $state.raw({ rtt_ms: 0, jitter_ms: 0, loss_percent: 0 });

  readonly motion: Motion;
  readonly history = new History();
  tick = 0;
  /** Called for every frame while the page is visible, with its sounds. */
  onframe: ((shapes: Shape[], events: number) => void) | undefined;
  /** Where a place of the game is on the page. */
  onpage: ((place: Point) => Point) | undefined;

  private readonly engine: Engine = takeEngine();
  private settling: ReturnType<typeof setTimeout> | undefined;
  private readonly oneself: Oneself | null;
  /** The claim to the player's seat; none for spectators, and in lobby sessions the host knows its members. */
  private readonly claims: Claims | null;
  /** The character that was chosen last, until the server says the same. */
  private chosen: string | null = null;
  /** Begins the game once, without being asked to press anything. */
  private begin: boolean;

  constructor(
    readonly options: JoinOptions,
    doors: Doors,
    begin: boolean,
    bring: Uint8Array<ArrayBuffer> | null = null,
  ) {
    this.begin = begin;
    this.motion = new Motion(60, options.mode === "room");
    this.engine.listener = (message) => this.hear(message);
    // A closed tab sends a close: WebTransport does not, and the paddle would stand still for a while.
    addEventListener("pagehide", this.goodbye);
    // A hidden page may be ended without another event.
    document.addEventListener("visibilitychange", this.keepClaim);
    const { hostname, websocket, webtransport } = doors;
    // In a lobby session, the host identifies the player.
    const is_known = options.mode === "room" && !options.pass;
    this.oneself = is_known && !options.watch ? this.becomeOneself() : null;
    this.claims = options.pass || options.watch ? null : new Claims(options.game, options.session);
    this.engine.send({
      kind: "join",
      options: $state.snapshot(options) as JoinOptions,
      doors: { hostname, websocket: { ...websocket }, webtransport: webtransport && { ...webtransport } },
      token: is_known ? settings.token : null,
      claim: this.claims?.take() ?? null,
      bring,
    });
  }

  /** The host's address has changed. */
  findAt(doors: Doors): void {
    this.engine.send({ kind: "doors", doors });
  }

  /** Switches to another character. */
  choose(name: string): void {
    if (name === this.active) return;
    this.active = this.chosen = settings.character = name;
    this.engine.send({ kind: "character", name });
  }

  controls({ held, x, y, tool = 0 }: Wanted): void {
    this.engine.send({ kind: "controls", held, x, y, tool });
  }

  /** Keeps a copy of the session in this browser now. */
  keep(): void {
    this.engine.send({ kind: "keep" });
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

  /** The newest messages with the server, a line of JSON each. */
  messages(): Promise<string> {
    return this.engine.ask({ what: "messages" });
  }

  showGhost(on: boolean): void {
    this.ghost = on;
    this.engine.send({ kind: "ghost", on });
  }

  /** Leaves, so that the seat is free at once. */
  leave(): void {
    removeEventListener("pagehide", this.goodbye);
    document.removeEventListener("visibilitychange", this.keepClaim);
    this.claims?.leave();
    this.engine.send({ kind: "leave" });
    this.engine.listener = undefined;
    this.oneself?.close();
    clearTimeout(this.settling);
    const { engine } = this;
    setTimeout(() => engine.stop(), 2_500);
  }

  private readonly keepClaim = (): void => {
    if (document.hidden) this.claims?.leave();
    else this.claims?.hold();
  };

  private readonly goodbye = (): void => {
    this.claims?.leave();
    this.engine.send({ kind: "leave" });
    // A page that the browser kept and shows again begins anew.
    addEventListener("pageshow", () => location.reload(), { once: true });
  };

  private hear(message: FromWorker): void {
    switch (message.kind) {
      case "tick":
        return this.ticked(message);
      case "status":
        this.claims?.given(message.claim);
        return this.changed(message.status);
      case "hud":
        this.hud = message.hud;
        return this.beginOnce();
      case "who":
        return this.known(message.who);
      case "diagnostics":
        return this.measured(message.diagnostics, message.at_ms);
      case "kept":
        this.kept = { text: keptText(message.info, message.why), at_ms: sharedNow() };
        return;
      case "server":
        return void this.compare(message.answer as ServerInfo);
      case "crash":
        this.crash = message.why;
        return this.engine.stop();
    }
  }

  private comesIn(): void {
    this.oneself?.plays();
    // A disconnected player's choice may not have arrived.
    if (this.chosen) this.engine.send({ kind: "character", name: this.chosen });
  }

  private becomeOneself(): Oneself {
    const { game, session } = this.options;
    return new Oneself(`${game}/${session}`, {
      token: (token) => this.engine.send({ kind: "come-as", token }),
      elsewhere: () => {
        if (this.status?.state === "playing") return; // The server closes this one, and says so.
        this.elsewhere = true;
        this.engine.send({ kind: "leave" });
      },
    });
  }

  private known({ token, bad_token, active, characters }: Who): void {
    this.oneself?.given(token, bad_token !== null);
    this.bad_token = bad_token;
    this.characters = characters;
    if (!active) return;
    if (this.chosen === active) this.chosen = null;
    this.active = settings.character = this.chosen ?? active;
    const wish = settings.wished_character;
    settings.wished_character = null;
    if (wish && characters.some(({ name }) => name === wish)) this.choose(wish);
  }

  private measured(diagnostics: Diagnostics, at_ms: number): void {
    this.history.add(diagnostics, at_ms);
    this.diagnostics = diagnostics.room ? explained(diagnostics, diagnostics.room, this.history) : diagnostics;
  }

  private ticked(message: TickMessage): void {
    this.tick = message.tick;
    this.started = true;
    this.motion.add(message);
    if (!document.hidden) this.onframe?.(this.motion.newest, message.events);
  }

  private changed(status: ShownStatus): void {
    const was = this.status?.state;
    this.status = status;
    if (status.state === "playing" && was !== "playing") this.comesIn();
    if (status.state === "lost") this.oneself?.refresh();
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
