// The chat of a session as lines: messages, and joins and leaves of members.

import type { Parting, PlayerId, SessionEvent, View } from "./protocol";
import { personOf } from "./view";

/** Older lines are dropped. */
const MOST_LINES = 200;

export interface Said {
  id: number;
  /** The member who wrote it, or whom it is about. */
  player: PlayerId;
  name: string;
  /** The message; null for an event. */
  line: string | null;
  /** The text of the event, after the name. */
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

/** How many messages follow a line. */
export function unreadSince(lines: Said[], newest: number): number {
  return lines.filter(({ id, line }) => id > newest && line !== null).length;
}

export class Chat {
  lines: Said[] = [];
  private next_id = 0;

  /** `before`: the view before the event. */
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
