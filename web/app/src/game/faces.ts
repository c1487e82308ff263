// The parts of a game page that differ by game: field, help and texts.

import type { Component, Snippet } from "svelte";
import Field from "../arena/Field.svelte";
import ArenaHelp from "../arena/Help.svelte";
import * as arena from "../arena/words";
import Court from "../pong/Court.svelte";
import PongHelp from "../pong/Help.svelte";
import * as pong from "../pong/words";
import type { Hud } from "../worker/messages";
import type { Play } from "./play.svelte";

interface Face {
  /** `quiet`: a notice is over it, so it shows no text itself. `toast`: a text to show for a while, where there is room. */
  Stage: Component<{ play: Play; quiet: boolean; toast: Snippet | null }>;
  Help: Component<{ close: () => void }>;
}

export function faceOf(game: string): Face {
  return game === "arena" ? { Stage: Field, Help: ArenaHelp } : { Stage: Court, Help: PongHelp };
}

/** For the title of the page. */
export function shortScore(hud: Hud): string {
  return hud.game === "arena" ? arena.shortScore(hud) : pong.shortScore(hud);
}

/** For screen readers: the score. */
export function scoreText(hud: Hud): string {
  return hud.game === "arena" ? arena.scoreText(hud) : pong.scoreText(hud);
}

/** And what the game waits for. */
export function saidOf(hud: Hud): string {
  return hud.game === "arena" ? arena.saidOf(hud) : pong.saidOf(hud);
}
