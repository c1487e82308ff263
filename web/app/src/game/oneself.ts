// The browser's identity on this server: all its pages share one token, and one of them plays in a room.

import { settings, TOKEN_KEY } from "../settings.svelte";

interface Hears {
  /** Another page was given a new token: the old one expires soon. */
  token(token: string): void;
  /** Another page plays in this room. */
  elsewhere(): void;
}

export class Oneself {
  /** The token that this page joins with. */
  private token = settings.token;
  private readonly others = "BroadcastChannel" in globalThis ? new BroadcastChannel("sametick.plays") : null;

  constructor(
    private readonly room: string,
    private readonly hears: Hears,
  ) {
    addEventListener("storage", this.stored);
    if (this.others) this.others.onmessage = ({ data }: MessageEvent<unknown>) => void (data === room && hears.elsewhere());
  }

  /** The server has issued a token, or refused the one that was sent. */
  given(token: string | null, was_bad: boolean): void {
    if (token === this.token) return;
    // A token that another page has stored meanwhile may be valid.
    if (token || (was_bad && settings.token === this.token)) settings.token = token;
    this.token = token;
  }

  /** This page plays: other pages stop trying. */
  plays(): void {
    this.others?.postMessage(this.room);
  }

  /** Checks whether another page was given a token while this one was suspended. */
  refresh(): void {
    this.take(settings.token);
  }

  close(): void {
    removeEventListener("storage", this.stored);
    this.others?.close();
  }

  private readonly stored = ({ key, newValue }: StorageEvent): void => {
    if (key === TOKEN_KEY) this.take(newValue);
  };

  private take(token: string | null): void {
    if (!token || token === this.token) return;
    this.token = token;
    this.hears.token(token);
  }
}
