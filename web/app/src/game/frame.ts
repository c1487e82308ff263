// What a lobby session adds around its game.

import type { Snippet } from "svelte";
import type { Notice } from "./words";

export interface Frame {
  /** The name of the session. */
  name: string;
  leave: () => void;
  /** People and chat, beside the game. `back`: to the game, and they stay. */
  side: Snippet<[close: () => void, back: () => void]>;
  /** The panel should be opened first: the player has no seat. */
  calls: boolean;
  /** Unread lines of chat. */
  unread: number;
  /** The chat is visible now, or no longer. */
  shown: (shown: boolean) => void;
  /** The link for others. */
  link: string;
  /** A notice that takes precedence over those of the game's own connection. */
  notice: Notice | null;
}
