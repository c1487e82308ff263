// Polls the server for its description and sessions while the page is visible. When the server is
// gone this reports it, and polls less and less often.

import { Locked, readHealth, readLobby, readServer, readSessions, type Health, type ServerInfo, type SessionInfo } from "./api";
import { ownBuilds } from "./engine";
import type { Summary } from "./lobby/protocol";
import { settings } from "./settings.svelte";

const EVERY_MS = 2_000;
/** The server itself changes rarely: asked every so many rounds. */
const SERVER_EVERY = 5;
const RETRIES_MS = [1_000, 2_000, 4_000, 8_000, 15_000];

class Presence {
  server: ServerInfo | null = $state(null);
  sessions: SessionInfo[] | null = $state(null);
  /** The lobby sessions with a free place; none if there is no lobby. */
  lobby: Summary[] | null = $state(null);
  health: Health | null = $state(null);
  /** The build ids of this page's games. */
  builds: Record<string, string> | null = $state(null);
  /** Whether the last request was not answered. */
  gone = $state(false);
  /** The time of the next request, if so. */
  retry_at_ms = $state(0);
  /** A passphrase is needed, or the one we have is wrong. */
  locked = $state(false);
  /** What went wrong with this page's own program. */
  broken: string | null = $state(null);

  private users = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private round = 0;
  private failures = 0;
  private asking = false;

  /** Keeps asking until the returned function is called. */
  watch(): () => void {
    if (this.users++ === 0) {
      document.addEventListener("visibilitychange", this.ask);
      void this.ask();
    }
    return () => {
      if (--this.users > 0) return;
      document.removeEventListener("visibilitychange", this.ask);
      clearTimeout(this.timer);
    };
  }

  /** Asks now instead of later. */
  ask = async (): Promise<void> => {
    if (document.hidden || this.asking || this.users === 0) return;
    clearTimeout(this.timer);
    this.asking = true;
    try {
      await this.askAll();
      this.failures = 0;
      this.gone = false;
    } catch {
      this.failures++;
      this.gone = true;
    }
    this.asking = false;
    const delay_ms = this.gone ? (RETRIES_MS[this.failures - 1] ?? 15_000) : EVERY_MS;
    this.retry_at_ms = Date.now() + delay_ms;
    if (this.users > 0) this.timer = setTimeout(this.ask, delay_ms);
  };

  /** Forgets the key and asks for the passphrase again. */
  forget(): void {
    settings.key = null;
    this.sessions = null;
    void this.ask();
  }

  private async askAll(): Promise<void> {
    if (this.gone || !this.server || this.round++ % SERVER_EVERY === 0) {
      [this.server, this.health] = await Promise.all([readServer(), readHealth()]);
    }
    if (!this.builds) this.loadBuilds();
    await this.askSessions();
  }

  private async askSessions(): Promise<void> {
    if (this.server?.locked && !settings.key) {
      this.locked = true;
      return;
    }
    try {
      [this.sessions, this.lobby] = await Promise.all([readSessions(settings.key), readLobby(settings.key)]);
      this.locked = false;
    } catch (error) {
      if (!(error instanceof Locked)) throw error;
      this.locked = true;
      this.sessions = null;
    }
  }

  private loadBuilds(): void {
    ownBuilds().then(
      (builds) => (this.builds = builds),
      (error: unknown) => (this.broken = error instanceof Error ? error.message : String(error)),
    );
  }

  /** Whether the server runs another build of a game than this page has. */
  differs(game: string): boolean {
    const theirs = this.server?.games.find(({ name }) => name === game)?.build;
    const ours = this.builds?.[game];
    return theirs !== undefined && ours !== undefined && theirs !== ours;
  }
}

export const presence = new Presence();
