// The characters of the arena and their looks: outlines of about 100 units in every direction, drawn on the map and in
// lists alike.

import type { ArenaHud, Life } from "../worker/messages";

export interface Look {
  title: string;
  body: string;
  /** Lines on the body: characters do not differ by colour alone. */
  emblem: string;
}

/** Avatars whose character is unknown. */
export const NOBODY: Look = {
  title: "Unknown",
  body: "M100 0A100 100 0 1 1-100 0A100 100 0 1 1 100 0Z",
  emblem: "",
};

const LOOKS: Record<string, Look> = {
  scout: { title: "Scout", body: NOBODY.body, emblem: "M-44 8L0-36L44 8M-44 52L0 8L44 52" },
  guard: {
    title: "Guard",
    body: "M-62-92H62Q92-92 92-62V62Q92 92 62 92H-62Q-92 92-92 62V-62Q-92-92-62-92Z",
    emblem: "M0-54L46-36V4Q46 42 0 60Q-46 42-46 4V-36Z",
  },
  smith: {
    title: "Smith",
    body: "M0-112L97-56V56L0 112L-97 56V-56Z",
    emblem: "M-42-52H42V-14H-42ZM0-14V62",
  },
};

/** The characters that can be chosen before a room has said which there are. */
export const CHARACTERS = Object.keys(LOOKS);

export function lookOf(character: string | null | undefined): Look {
  return (character && LOOKS[character]) || NOBODY;
}

/** The look of each character, by number. */
export function looksOf({ players }: ArenaHud): Map<number, Look> {
  return new Map(players.map(({ seat, character }) => [seat, lookOf(character)]));
}

/** What a character has done, in a few words. */
export function lifeText({ kills, deaths, built }: Life): string {
  return `shot ${kills}, was shot ${deaths}, built ${built}`;
}
