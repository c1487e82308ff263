// Texts of the session page.

import type { Person, View } from "../lobby/protocol";
import { WINDOW_MS, type State } from "../lobby/stay";
import { groupOf, missingToStart, personOf, scoresOf } from "../lobby/view";
import type { Notice } from "../game/words";

type Away = State & { at: "away" };

export function secondsLeft(until_ms: number, now_ms: number): number {
  return Math.max(0, Math.ceil((until_ms - now_ms) / 1000));
}

/** How long a seat is still kept: never longer than seats are kept. */
export function seatWaits({ until_ms }: Away, now_ms: number): number {
  return Math.min(WINDOW_MS / 1000, secondsLeft(until_ms, now_ms));
}

export function awayText({ suspended }: Away, has_seat: boolean): { title: string; text: string } {
  if (suspended) return { title: "The server is restarting.", text: "This page comes back by itself, and the session is as it was." };
  if (has_seat) return { title: "Connection lost.", text: "Your seat waits for you:" };
  return { title: "Connection lost.", text: "Your place waits for you:" };
}

/** While a member joins again, at another host. */
export const ON_THE_WAY = { title: "On the way.", text: "The session goes on elsewhere. This page goes there by itself." };

/** The same over a game; nothing while connected. */
export function noticeOf(state: State, has_seat: boolean, now_ms: number): Notice | null {
  if (state.at === "away") return awayNotice(state, has_seat, now_ms);
  if (state.at !== "entering") return null;
  return { name: "entering", title: headline(ON_THE_WAY.title), text: ON_THE_WAY.text, small: true, busy: true };
}

function awayNotice(away: Away, has_seat: boolean, now_ms: number): Notice {
  const { title, text } = awayText(away, has_seat);
  const countdown_s = away.suspended ? secondsLeft(away.retry_at_ms ?? now_ms, now_ms) : seatWaits(away, now_ms);
  const said = away.suspended ? `${text} Trying again in` : text;
  return { name: "away", title: headline(title), text: said, countdown_s, small: true, busy: true };
}

/** A sentence as a headline. */
function headline(sentence: string): string {
  return sentence.replace(/\.$/, "");
}

/** What a seat is called: its group as well, where there are several. */
export function seatText(view: View, seat: number | null): string {
  const group = groupOf(view, seat);
  const name = group?.seats.find(({ number }) => number === seat)?.name;
  if (!group || !name) return "no seat";
  return view.settings.groups > 1 ? `${group.name}, ${name}` : name;
}

/** What the creator waits for; empty if nothing. */
export function startText(view: View): string {
  const missing = missingToStart(view);
  if (!missing) return "";
  if ("nobody" in missing) return "Nobody has a seat yet.";
  const names = missing.unready.map(({ name }) => name);
  return view.settings.groups === 1 ? "Nobody is ready yet." : `Nobody is ready in ${listed(names)} yet.`;
}

/** The next step for the player, in the lobby phase. */
export function nextText(view: View, you: Person | null): string {
  const is_creator = view.creator === you?.player;
  if (!you || you.seat === null) return "Choose a seat.";
  if (!you.ready) return "Say when you are ready.";
  if (is_creator) return startText(view) || "All set. Start when you like.";
  const creator = personOf(view, view.creator);
  return startText(view) || `Ready. ${creator ? "Waiting for the start." : "Waiting for a player to run this session."}`;
}

/** The winners, in a line. */
export function winnersText(view: View, you: Person | null, nameOf: (seat: number) => string): string {
  const winners = scoresOf(view.results).filter(({ won }) => won);
  if (winners.length === 0) return "The game is over";
  if (winners.some(({ seat }) => you && seat === you.seat)) return winners.length === 1 ? "You win" : "You win, together";
  return `${listed(winners.map(({ seat }) => nameOf(seat)))} ${winners.length === 1 ? "wins" : "win"}`;
}

/** Such as `a, b and c`. */
export function listed(names: string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}
