// What was said in a session, and what happened to the people in it, as lines one below the other.

import type { Parting, PlayerId, SessionEvent, View } from "./protocol";
import { personOf } from "./view";

/** Older lines are forgotten. */
const MOST_LINES = 200;

export interface Said {
  id: number;
  /** Who it is about, or says it. */
  player: PlayerId;
  name: string;
  /** What they say; null if it is something that happened. */
  line: string | null;
  /** What happened, after the name. */
  what: string;
}

const PARTINGS: Record<Parting, string> = {
  left: "has left",
  released: "has not come back",
  kicked: "was asked to leave",
  banned: "was asked to leave for good",
};

/** The newest line, for `unreadSince`. */
export function newestOf(lines: Said[]): number {
  return lines.at(-1)?.id ?? -1;
}

/** How many people have spoken after a line. */
export function unreadSince(lines: Said[], newest: number): number {
  return lines.filter(({ id, line }) => id > newest && line !== null).length;
}

export class Chat {
  lines: Said[] = [];
  private next_id = 0;

  /** `before`: what the session was like until then. */
  hear(before: View, { chat, person, left, creator }: SessionEvent): void {
    if (chat) this.add(chat.player, chat.name, chat.line, "");
    const known = personOf(before, person?.player ?? left?.player ?? null);
    if (person && !known) this.add(person.player, person.name, null, "is here");
    if (person && known && known.away !== person.away) {
      this.add(person.player, person.name, null, person.away ? "was cut off" : "is back");
    }
    if (left && known) this.add(left.player, known.name, null, PARTINGS[left.why]);
    const host = personOf(before, creator?.creator ?? null);
    if (host) this.add(host.player, host.name, null, "runs this session now");
  }

  private add(player: PlayerId, name: string, line: string | null, what: string): void {
    this.lines = [...this.lines, { id: this.next_id++, player, name, line, what }].slice(-MOST_LINES);
  }
}
