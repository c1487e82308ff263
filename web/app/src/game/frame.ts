// What a session that people gathered in puts around its game.

import type { Snippet } from "svelte";
import type { Notice } from "./words";

export interface Frame {
  /** What the session is called. */
  name: string;
  leave: () => void;
  /** People and chat, beside the game. `back`: to the game, and they stay. */
  side: Snippet<[close: () => void, back: () => void]>;
  /** Somebody should look there first: they have no seat. */
  calls: boolean;
  /** Lines of chat that nobody has seen. */
  unread: number;
  /** They are seen now, or not any more. */
  shown: (shown: boolean) => void;
  /** The link for others. */
  link: string;
  /** What stands before anything that the game's own connection has to say. */
  notice: Notice | null;
}
