// The gateway connection of this page, shared by all its parts, and tickets for the session page.

import { socketQuery } from "../api";
import { takeToken } from "../game/entry.svelte";
import { presence } from "../presence.svelte";
import { settings } from "../settings.svelte";
import { sharedNow } from "../worker/messages";
import { gatewayOf } from "./address";
import { Gateway, type GatewaySeen } from "./gateway";
import type { Go, SessionId } from "./protocol";
import { browser } from "./world";

function signsIn(): boolean {
  return presence.server?.sign_in ?? false;
}

class Lobby {
  readonly gateway = new Gateway({
    world: browser,
    address: async () => `${gatewayOf(location)}/api/lobby/ws${await socketQuery()}`,
    // Where players sign in, they have the same identity as in rooms.
    get token() {
      if (!signsIn()) return settings.lobby_token;
      takeToken(true);
      return settings.token;
    },
    set token(token) {
      if (!signsIn()) settings.lobby_token = token;
    },
    signsIn,
    changed: (seen) => (this.seen = seen),
  });
  seen: GatewaySeen = $state.raw(this.gateway.seen);
  /** Whether the server does not answer, as far as the page can tell. */
  readonly is_gone = $derived(this.seen.at === "gone" || (presence.gone && this.seen.at !== "open"));
  /** The time of the next attempt, if so: wall-clock time, as in presence. */
  readonly retry_at_ms = $derived(this.seen.at === "gone" ? Date.now() + this.seen.retry_at_ms - sharedNow() : presence.retry_at_ms);

  /** A ticket is good for seconds and once, so it is kept only in memory. */
  private readonly tickets = new Map<SessionId, Go>();

  constructor() {
    addEventListener("online", this.gateway.retry);
  }

  /** Asks the server now instead of later. */
  readonly retry = (): void => {
    this.gateway.retry();
    void presence.ask();
  };

  /** Keeps a ticket for the page that is about to be opened. */
  hand(go: Go): void {
    this.tickets.set(go.session, go);
  }

  take(session: SessionId): Go | null {
    const go = this.tickets.get(session) ?? null;
    this.tickets.delete(session);
    return go;
  }
}

export const lobby = new Lobby();
