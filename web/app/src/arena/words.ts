// Texts of arena.

import type { ArenaHud, PersonHud } from "../worker/messages";
import { FIRST_BOT } from "./colours";

/** The name of a player on the map and in lists. */
export function nameOf(hud: ArenaHud, number: number): string {
  const person = hud.players.find(({ seat }) => seat === number);
  if (person?.name) return person.name;
  return number >= FIRST_BOT ? `Bot ${number - FIRST_BOT + 1}` : `Player ${number + 1}`;
}

/** The best first. */
export function ranked(players: PersonHud[]): PersonHud[] {
  return [...players].sort((a, b) => b.score - a.score || a.deaths - b.deaths || a.seat - b.seat);
}

/** The text about the killer of the own avatar, while it is down. */
export function fallText(hud: ArenaHud): string {
  const own = hud.players.find(({ you }) => you);
  const last = hud.feed.filter(({ victim }) => victim === own?.seat).sort((a, b) => a.ago - b.ago)[0];
  return last && last.killer !== null ? `Shot by ${nameOf(hud, last.killer)}` : "You are down";
}

/** The goal of the game; empty if it has none. */
export function goalText(hud: ArenaHud): string {
  return hud.points > 0 ? `First to ${hud.points}` : "";
}

/** Whether a round is about to begin, and players cannot move yet. */
export function isCounting(hud: ArenaHud): boolean {
  return hud.winner === null && hud.wait > 0;
}

/** The text about the winner, if there is one. */
export function wonText(hud: ArenaHud): string {
  if (hud.winner === null) return "";
  const is_own = hud.players.some(({ you, seat }) => you && seat === hud.winner);
  return is_own ? "You have won" : `${nameOf(hud, hud.winner)} has won`;
}

/** For the title of the page. */
export function shortScore(hud: ArenaHud): string {
  return hud.phase === "watching" ? "" : `${hud.score} ${hud.score === 1 ? "point" : "points"}`;
}

/** For screen readers. */
export function scoreText(hud: ArenaHud): string {
  const deaths = `${hud.deaths} ${hud.deaths === 1 ? "death" : "deaths"}`;
  return hud.phase === "watching" ? "" : `${shortScore(hud)}, ${deaths}`;
}

export function saidOf(hud: ArenaHud): string {
  if (isCounting(hud)) return `Round ${hud.round} in ${hud.wait}`;
  return wonText(hud) || (hud.phase === "dead" ? fallText(hud) : "");
}
