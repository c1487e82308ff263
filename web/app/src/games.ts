// Texts and defaults for each game. An unknown game is shown by its name alone.

import type { Mode } from "./worker/messages";

export interface GameText {
  title: string;
  text: string;
  /** The default mode. */
  mode: Mode;
  /** How many players a session is for: the fewest, the most, and the default. */
  players: { least: number; most: number; usual: number };
  /** What its scenarios mean. */
  scenarios?: Record<string, string>;
  /** What is harder where it is harder. */
  difficulty?: string;
}

const GAMES: Record<string, GameText> = {
  pong: {
    title: "Pong",
    text: "Two to four players, one wall each. First to eleven. Bots play on empty seats until a player takes one.",
    mode: "lockstep",
    players: { least: 2, most: 4, usual: 2 },
    scenarios: { short: "first to 5", classic: "first to 11", long: "first to 21", practice: "game after game" },
    difficulty: "How well the bots play that have the empty seats.",
  },
  arena: {
    title: "Arena",
    text: "Walk, shoot and build cover, with the players in the room. Bots are always there, and each round goes to the first with ten points.",
    mode: "room",
    players: { least: 1, most: 32, usual: 16 },
    scenarios: { skirmish: "first to 5", battle: "first to 15", war: "first to 30", field: "first to 3, no rocks", practice: "no end, no rocks" },
    difficulty: "How many bots there are: none at 1.",
  },
};

export function gameText(name: string): GameText {
  const title = name.charAt(0).toUpperCase() + name.slice(1);
  return GAMES[name] ?? { title, text: "", mode: "lockstep", players: { least: 2, most: 4, usual: 2 } };
}

/** What the ways to run a game are called, and what they mean. */
export const MODES: Record<Mode, { title: string; text: string }> = {
  room: { title: "Room", text: "The server decides, and tells everyone what is around them." },
  lockstep: { title: "Lockstep", text: "Every player computes the whole world, tick by tick." },
};
