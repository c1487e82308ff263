// The colours of the arena, from the theme.

export interface Colours {
  text: string;
  accent: string;
  muted: string;
  good: string;
  warn: string;
  bad: string;
  ground: string;
  line: string;
  strong: string;
  beyond: string;
  edge: string;
  raised: string;
  rock: string;
  rock_edge: string;
  wall: string;
  wall_edge: string;
  crate: string;
  crate_edge: string;
  seats: string[];
}

const SEATS = 8;

/** Bots have numbers from here on. */
export const FIRST_BOT = 1000;

export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const get = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: get("text"),
    accent: get("accent"),
    muted: get("muted"),
    good: get("good"),
    warn: get("warn"),
    bad: get("bad"),
    ground: get("ground"),
    line: get("ground-line"),
    strong: get("ground-strong"),
    beyond: get("beyond"),
    edge: get("court-edge"),
    raised: get("raised"),
    rock: get("rock"),
    rock_edge: get("rock-edge"),
    wall: get("wall"),
    wall_edge: get("wall-edge"),
    crate: get("crate"),
    crate_edge: get("crate-edge"),
    seats: Array.from({ length: SEATS }, (_, seat) => get(`seat-${seat}`)),
  };
}

/** The colour of a seat. Bots begin at the other end, so that they differ from the first players. */
export function hueOf(number: number): number {
  return number >= FIRST_BOT ? SEATS - 1 - ((number - FIRST_BOT) % SEATS) : Math.max(0, number) % SEATS;
}

export function colourOf(colours: Colours, number: number): string {
  return (number >= 0 && colours.seats[hueOf(number)]) || colours.muted;
}
