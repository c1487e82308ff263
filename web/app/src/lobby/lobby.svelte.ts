// The gateway of this page's server, for every part of the page that needs it, and tickets on the way to a session.

import { socketQuery } from "../api";
import { settings } from "../settings.svelte";
import { gatewayOf } from "./address";
import { Gateway, type GatewaySeen } from "./gateway";
import type { Go, SessionId } from "./protocol";
import { browser } from "./world";

class Lobby {
  readonly gateway = new Gateway({
    world: browser,
    address: async () => `${gatewayOf(location)}/api/lobby/ws${await socketQuery()}`,
    get token() {
      return settings.lobby_token;
    },
    set token(token) {
      settings.lobby_token = token;
    },
    changed: (seen) => (this.seen = seen),
  });
  seen: GatewaySeen = $state.raw(this.gateway.seen);

  /** A ticket is good for seconds and once, so it is in nobody's memory but this. */
  private readonly tickets = new Map<SessionId, Go>();

  constructor() {
    addEventListener("online", this.gateway.retry);
  }

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
