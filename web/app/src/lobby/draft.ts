// Draft settings of a session, new or existing: the form's values, and what is sent.

import type { GameInfo } from "../api";
import { gameText } from "../games";
import { cleanPlayerName } from "../names";
import type { Settings } from "./protocol";
import { seatsOf } from "./view";

const USUAL_DIFFICULTY = 5;

/** The options of a game in sessions; nothing if it supports none. */
export function sessionOf(game: GameInfo | undefined) {
  return game?.session && game.session.groups.length > 0 ? game.session : null;
}

/** The default settings of a game. */
export function usualSettings(game: GameInfo, name: string): Settings {
  const { mode } = gameText(game.name);
  return {
    name,
    game: game.name,
    mode: game.modes.includes(mode) ? mode : (game.modes[0] ?? mode),
    scenario: usualScenario(sessionOf(game)?.scenarios ?? []),
    difficulty: USUAL_DIFFICULTY,
    groups: 1,
    listed: true,
  };
}

/** The first is the default. */
function usualScenario(scenarios: string[]): string | null {
  return scenarios[0] ?? null;
}

/** With a name that the server takes. */
export function tidied(settings: Settings, otherwise: string): Settings {
  return { ...settings, name: cleanPlayerName(settings.name) || otherwise };
}

/** How many seats there are with so many groups. */
export function sizesOf(game: GameInfo): { groups: number; seats: number; names: string }[] {
  const plan = sessionOf(game) ?? { groups: [] };
  return plan.groups.map((_, at) => ({
    groups: at + 1,
    seats: seatsOf(plan, at + 1),
    names: plan.groups.slice(0, at + 1).map(({ name }) => name).join(", "),
  }));
}
