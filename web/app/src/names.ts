// Readable random names for sessions and for players without a name.

const COLOURS = [
  "amber", "azure", "coral", "crimson", "golden", "indigo", "ivory", "jade",
  "lilac", "mint", "olive", "pearl", "ruby", "silver", "teal", "violet",
];
const ANIMALS = [
  "badger", "falcon", "ferret", "heron", "ibex", "jackal", "kestrel", "lynx",
  "marten", "newt", "otter", "puffin", "raven", "stoat", "tapir", "wren",
];
const MOODS = [
  "Brave", "Calm", "Clever", "Eager", "Gentle", "Happy", "Lucky", "Merry",
  "Nimble", "Patient", "Quick", "Quiet", "Sunny", "Swift", "Witty", "Bold",
];

/** The server's limits. */
const MAX_PLAYER_BYTES = 48;
const MAX_PLAYER_LETTERS = 24;
const MAX_SESSION_BYTES = 64;

/** Numbers below a limit; the real ones come from the browser's own source of randomness. */
export type Draw = (below: number) => number;

export const draw: Draw = (below) => {
  const [value = 0] = crypto.getRandomValues(new Uint32Array(1));
  return value % below;
};

/** Such as `amber-otter-4821`. Knowing an unlisted session's name is enough to join it, hence the digits. */
export function sessionName(pick: Draw = draw): string {
  return `${one(COLOURS, pick)}-${one(ANIMALS, pick)}-${1000 + pick(9000)}`;
}

/** Such as `Quick Otter`. */
export function playerName(pick: Draw = draw): string {
  const animal = one(ANIMALS, pick);
  return `${one(MOODS, pick)} ${animal.charAt(0).toUpperCase()}${animal.slice(1)}`;
}

/** What a person typed, as a name that the server takes: no control characters, not too long. Empty if nothing is left. */
export function cleanPlayerName(typed: string): string {
  const letters = [...typed.replace(/\p{C}/gu, "").replace(/\s+/g, " ").trim()].slice(0, MAX_PLAYER_LETTERS);
  return cut(letters.join(""), MAX_PLAYER_BYTES);
}

/** Such as `Amber Otter`: the name of a lobby session. */
export function gatheringName(pick: Draw = draw): string {
  return [one(COLOURS, pick), one(ANIMALS, pick)].map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(" ");
}

export function isSessionName(name: string): boolean {
  return name.length > 0 && bytes(name) <= MAX_SESSION_BYTES && !/[\p{C}/\s]/u.test(name);
}

function one(list: readonly string[], pick: Draw): string {
  return list[pick(list.length)] ?? "";
}

/** How long the server takes a text to be. */
export function bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** Cut between characters, never inside one. */
function cut(text: string, limit: number): string {
  let kept = "";
  for (const letter of text) {
    if (bytes(kept + letter) > limit) break;
    kept += letter;
  }
  return kept.trim();
}
