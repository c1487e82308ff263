// The view of a session, built from its events. Pure, like `View::apply` of crates/session.

import type { GroupState, Person, PlayerId, SessionEvent, View } from "./protocol";

/** The view after an event. */
export function applied(view: View, event: SessionEvent): View {
  const { welcome, person, left, group, about, phase, creator } = event;
  if (welcome) return welcome.view;
  if (person) return { ...view, people: withPerson(view.people, person) };
  if (left) return { ...view, people: view.people.filter(({ player }) => player !== left.player) };
  if (group) return { ...view, groups: withGroup(view.groups, group) };
  if (about) return { ...view, ...about, groups: view.groups.slice(0, about.settings.groups) };
  if (phase) return { ...view, ...phase };
  if (creator) return { ...view, creator: creator.creator };
  return view;
}

/** People are in the order of their ids. */
function withPerson(people: Person[], person: Person): Person[] {
  const others = people.filter(({ player }) => player !== person.player);
  return [...others, person].sort((a, b) => (a.player < b.player ? -1 : 1));
}

function withGroup(groups: GroupState[], group: GroupState): GroupState[] {
  const is_known = groups.some((one) => one.group === group.group);
  return is_known ? groups.map((one) => (one.group === group.group ? group : one)) : [...groups, group];
}

export interface Seat {
  /** Numbered through all groups. */
  number: number;
  name: string;
  sitter: Person | null;
}

export interface Group extends GroupState {
  seats: Seat[];
}

/** The groups that take part, with their seats and members. */
export function groupsOf(view: View): Group[] {
  const { plan, settings, groups, people } = view;
  let number = 0;
  return plan.groups.slice(0, settings.groups).map(({ name, seats }, at) => {
    const state = groups.find(({ group }) => group === at) ?? { group: at, name, captain: null };
    return { ...state, seats: seats.map((name) => seatOf(name, number++, people)) };
  });
}

function seatOf(name: string, number: number, people: Person[]): Seat {
  return { number, name, sitter: people.find(({ seat }) => seat === number) ?? null };
}

export function personOf(view: View, player: PlayerId | null): Person | null {
  return view.people.find((person) => person.player === player) ?? null;
}

export function seatsOf(plan: View["plan"], groups: number): number {
  return plan.groups.slice(0, groups).reduce((sum, { seats }) => sum + seats.length, 0);
}

/** Which group a seat is in. */
export function groupOf(view: View, seat: number | null): Group | null {
  return groupsOf(view).find(({ seats }) => seats.some(({ number }) => number === seat)) ?? null;
}

/** What keeps the game from starting: no member sits yet, or no member is ready in these groups. Nothing if it can start. */
export function missingToStart(view: View): { nobody: true } | { unready: Group[] } | null {
  const manned = groupsOf(view).filter(({ seats }) => seats.some(({ sitter }) => sitter));
  if (manned.length === 0) return { nobody: true };
  const unready = manned.filter(({ seats }) => !seats.some(({ sitter }) => sitter?.ready));
  return unready.length > 0 ? { unready } : null;
}

export interface Score {
  seat: number;
  points: number;
  won: boolean;
}

/** The results of the last game, the best first; nothing if there are none, or they cannot be parsed. */
export function scoresOf(results: string | null): Score[] {
  try {
    const { scores } = JSON.parse(results ?? "{}") as { scores?: unknown };
    if (!Array.isArray(scores)) return [];
    return scores.filter(isScore).sort((a, b) => Number(b.won) - Number(a.won) || b.points - a.points || a.seat - b.seat);
  } catch {
    return [];
  }
}

function isScore(value: unknown): value is Score {
  if (typeof value !== "object" || value === null) return false;
  const { seat, points, won } = value as Record<string, unknown>;
  return typeof seat === "number" && typeof points === "number" && typeof won === "boolean";
}
