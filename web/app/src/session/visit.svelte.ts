// State of the session page: view, last refusal, and chat.

import { socketQuery } from "../api";
import { lobby } from "../lobby/lobby.svelte";
import { memory } from "../lobby/memory";
import { randomKey, type Requests, type SessionId } from "../lobby/protocol";
import { seats } from "../lobby/seats.svelte";
import { Stay, type State, type StaySeen } from "../lobby/stay";
import { groupsOf, personOf } from "../lobby/view";
import { refusedText } from "../lobby/words";
import { browser } from "../lobby/world";
import { cleanPlayerName } from "../names";
import { gatheringAddress } from "../place";
import { settings } from "../settings.svelte";
import { exposeSession } from "../testing";

const TOAST_MS = 5_000;

export class Visit {
  seen: StaySeen = $state.raw({} as StaySeen);
  /** What was refused just now, in plain words. */
  toast = $state("");
  /** The seats at the end of the last game: members may leave while others read the results. */
  sitters: Map<number, string> = $state.raw(new Map());

  readonly stay: Stay;
  /** Tells this page from others of this browser. */
  private readonly page = randomKey();
  private readonly release: () => void;
  private readonly hide: () => void;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private is_acting = false;
  private has_left = false;

  readonly you = $derived(this.seen.view ? personOf(this.seen.view, this.seen.you) : null);
  readonly is_creator = $derived(this.seen.view !== null && this.seen.view.creator === this.seen.you);

  constructor(session: SessionId) {
    this.stay = new Stay(session, {
      world: browser,
      memory,
      page: location,
      query: socketQuery,
      join: (join, signal) => lobby.gateway.join(join, signal),
      changed: (seen) => this.changed(seen),
      moved: (session) => this.moved(session),
    });
    this.seen = this.stay.seen;
    this.hide = exposeSession(() => this.seen);
    addEventListener("online", this.stay.retry);
    addEventListener("pagehide", this.leaveOpen);
    this.release = browser.everySecond(this.holdSeat);
    this.stay.begin(cleanPlayerName(settings.name), lobby.take(session));
  }

  /** Whether this browser is in the session, by a page that is gone or by another one. */
  membership(): "none" | "left" | "elsewhere" {
    const seat = seats.of(this.seen.session);
    if (!seat) return "none";
    return seat.is_open ? "elsewhere" : "left";
  }

  /** Joins by a link or a button. A member needs no password. */
  come(): void {
    const name = cleanPlayerName(settings.name);
    if (this.membership() === "none") void this.stay.join(name, null);
    else void this.stay.joinAsMember(name);
  }

  /** Leaves for good. */
  leave(): void {
    seats.forget(this.seen.session);
    this.stay.leave();
    this.has_left = true;
  }

  join(name: string, password: string): void {
    settings.name = name;
    void this.stay.join(cleanPlayerName(settings.name), password || null);
  }

  /** Whether it was done; if not, why not is said. */
  async request<R extends keyof Requests>(action: R, payload: Requests[R]): Promise<boolean> {
    const wrong = await this.ask(action, payload);
    if (wrong) this.say(wrong);
    return wrong === "";
  }

  /** Why it was not done, in plain words; empty if it was. */
  async ask<R extends keyof Requests>(action: R, payload: Requests[R]): Promise<string> {
    const refused = await this.stay.request(action, payload);
    return refused === null ? "" : refusedText(refused);
  }

  /** For buttons: until there is an answer, another press is the same press. */
  async press<R extends keyof Requests>(action: R, payload: Requests[R]): Promise<boolean> {
    if (this.is_acting) return false;
    this.is_acting = true;
    const is_done = await this.request(action, payload);
    this.is_acting = false;
    return is_done;
  }

  /** The page is left: the seat waits for a while. */
  end(): void {
    clearTimeout(this.timer);
    this.hide();
    removeEventListener("online", this.stay.retry);
    removeEventListener("pagehide", this.leaveOpen);
    this.release();
    this.leaveOpen();
    this.stay.end();
  }

  private readonly leaveOpen = (): void => {
    if (this.seen.state.at === "in") seats.leave(this.seen.session, this.page);
  };

  /** The address names the session that goes on; the page stays what it is. */
  private moved(session: SessionId): void {
    seats.forget(this.seen.session);
    history.replaceState(history.state, "", gatheringAddress(session));
  }

  private readonly holdSeat = (): void => {
    const { state, view, session } = this.seen;
    if (state.at === "in" && view && !this.has_left) seats.hold(session, view.settings.name, this.page);
  };

  private say(text: string): void {
    clearTimeout(this.timer);
    this.toast = text;
    this.timer = setTimeout(() => (this.toast = ""), TOAST_MS);
  }

  private changed(seen: StaySeen): void {
    if (seen.view && seen.view.phase !== "lobby" && seen.view !== this.seen.view) this.remember(seen);
    const was_in = this.seen.state?.at === "in";
    this.seen = seen;
    if (seen.state.at === "in" && !was_in) this.holdSeat();
    if (isNoMember(seen.state)) seats.forget(seen.session);
  }

  private remember({ view }: StaySeen): void {
    if (!view) return;
    const sitters = view.phase === "running" ? new Map<number, string>() : new Map(this.sitters);
    for (const { seats } of groupsOf(view)) {
      for (const { number, sitter } of seats) if (sitter && !sitters.has(number)) sitters.set(number, sitter.name);
    }
    this.sitters = sitters;
  }
}

/** Refusals that are not shown to members. */
const STRANGERS_HEAR = new Set(["not_found", "full", "banned", "over", "quarantined"]);

/** Buttons that leave the page but not the session. */
const STILL_MEMBERS = new Set(["elsewhere", "lost", "barred"]);

/** Whether the player is not in the session, or no longer. */
function isNoMember(state: State): boolean {
  if (state.at === "out") return !STILL_MEMBERS.has(state.why);
  return state.at === "door" && state.refused !== null && STRANGERS_HEAR.has(state.refused);
}
