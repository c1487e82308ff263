// Texts of the lobby and of sessions.

import type { Phase, Settings } from "./protocol";
import type { Why } from "./stay";
import { gameText, MODES } from "../games";
import { bytes } from "../names";

/** Why a request was refused, for the member who sent it. */
const REFUSED: Record<string, string> = {
  not_found: "There is no such session, or its password is another one.",
  full: "Every place is taken.",
  seat_taken: "Another player has this seat.",
  no_such_seat: "This session has no such seat.",
  no_seat: "Choose a seat first.",
  no_such_player: "They are not here any more.",
  not_now: "That cannot be done now.",
  not_creator: "Only the creator of this session can do that.",
  not_captain: "Only the captain of a group can do that.",
  not_ready: "In every group with players, one has to be ready.",
  other_group: "While the game goes on, you stay in your group.",
  banned: "The creator of this session has banned you.",
  too_fast: "That was too fast. Wait a moment.",
  too_many_guesses: "Too many passwords were tried. Wait a few seconds, then try again.",
  busy: "There is much to do at the moment. Try again in a second.",
  bad_settings: "The game cannot be played like this.",
  quarantined: "The game crashed again and again and was stopped.",
  over: "This session is over.",
  no_host: "There is no place for another session at the moment. Try again later, or join one.",
  unavailable: "The host of this session does not answer. Try again in a moment.",
  lost: "The server of this session has not answered for a while. Try again in a moment.",
  stopping: "The server is about to stop. Try again in a minute.",
  bad_ticket: "It took too long to get in. Try again.",
  bad_payload: "The server did not understand that. Check what you typed; names have up to 24 characters.",
  cut: "You are not connected at the moment.",
};

export function refusedText(code: string): string {
  return REFUSED[code] ?? `The server said no (${code}).`;
}

/** The server's limits. */
const MAX_PASSWORD_BYTES = 64;
const MAX_LINE_BYTES = 600;

/** Why a password is not allowed; empty if it is. */
export function passwordText(password: string): string {
  if (bytes(password) <= MAX_PASSWORD_BYTES) return "";
  return "This password is too long: it may have 64 plain letters and digits, and fewer of others.";
}

/** Why a line of chat cannot be sent; empty if it can. */
export function lineText(line: string): string {
  return bytes(line) <= MAX_LINE_BYTES ? "" : "This is too long for one line. Say it in two.";
}

/** The actions that a screen offers. */
export type Way = "again" | "try" | "retry" | "here" | "lobby" | "new";

export interface ScreenText {
  /** For tests. */
  name: string;
  title: string;
  text: string;
  ways: Way[];
}

const OUT: Record<Why, Omit<ScreenText, "name">> = {
  left: { title: "You have left", text: "Your seat is free for other players.", ways: ["lobby", "again"] },
  kicked: { title: "You were asked to leave", text: "The creator of the session has removed you.", ways: ["lobby", "again"] },
  banned: {
    title: "You are not let in here",
    text: "The creator of this session has banned you. Other sessions are open to you.",
    ways: ["lobby", "new"],
  },
  elsewhere: {
    title: "You are in this session in another window",
    text: "You came in again, in another tab or window or on another device, and have your seat there. Nothing is lost.",
    ways: ["here", "lobby"],
  },
  released: {
    title: "Your seat was given up",
    text: "A seat waits for one minute, and you were away for longer. The session may still go on: come in again.",
    ways: ["again", "lobby"],
  },
  lost: {
    title: "No way back to the session",
    text: "Its host could not be reached for a minute. Check your connection; if the server is back, so is the session.",
    ways: ["retry", "lobby"],
  },
  barred: {
    title: "This page may not connect to the host",
    text: "The page came over an encrypted connection, and the host of this session offers none: browsers do not mix the two. The operator of the server can give the host a certificate.",
    ways: ["lobby", "new"],
  },
  unclaimed: { title: "This session is over", text: "Nobody was there for 30 seconds, so it was closed.", ways: ["new", "lobby"] },
  idle: { title: "This session is over", text: "Nothing was done for 30 minutes, so it was closed.", ways: ["new", "lobby"] },
  abandoned: { title: "This session is over", text: "Nobody was there for five minutes, so the game was ended.", ways: ["new", "lobby"] },
  finished: { title: "This session is over", text: "Its results were there for five minutes. Thanks for playing.", ways: ["new", "lobby"] },
  quarantined: {
    title: "The game was stopped",
    text: "It crashed three times within a minute, so the server has put it aside. Its log is kept for the operator of the server: nothing that you did caused this.",
    ways: ["new", "lobby"],
  },
  moved: { title: "This session goes on elsewhere", text: "Another host has taken it over. Come in again to go on.", ways: ["again", "lobby"] },
  stopped: { title: "This session was stopped", text: "The operator of the server has ended it.", ways: ["lobby", "new"] },
};

/** After the player is no longer in a session. */
export function outScreen(why: Why): ScreenText {
  return { name: why, ...OUT[why] };
}

const CLOSED_DOORS: Record<string, Omit<ScreenText, "name">> = {
  full: {
    title: "This session is full",
    text: "Every place is taken. Try again when a player has left, or find another one.",
    ways: ["try", "lobby"],
  },
  banned: OUT.banned,
  over: { title: "This session is over", text: "It has ended a moment ago.", ways: ["new", "lobby"] },
  quarantined: OUT.quarantined,
  stopping: {
    title: "The server is about to stop",
    text: "It lets nobody in any more. It may be back in a minute.",
    ways: ["try", "lobby"],
  },
  unavailable: {
    title: "The host does not answer",
    text: "The session may be restarting. Try again in a moment.",
    ways: ["try", "lobby"],
  },
  lost: {
    title: "This session cannot be reached",
    text: "The server of this session has not answered for a while. Try again in a moment.",
    ways: ["try", "lobby"],
  },
};

/** Failures after which a form to join is useless. */
export function closedDoor(refused: string): ScreenText | null {
  const text = CLOSED_DOORS[refused];
  return text ? { name: refused, ...text } : null;
}

export const PHASES: Record<Phase, string> = {
  lobby: "Gathering",
  running: "Playing",
  results: "Results",
  closed: "Over",
};

/** Such as `Pong, lockstep · first to 11 · difficulty 3`. */
export function aboutText(settings: Settings): string {
  const { game, mode, scenario, difficulty } = settings;
  const parts = [`${gameText(game).title}, ${MODES[mode].title.toLowerCase()}`, scenario && scenarioText(game, scenario)];
  return [...parts, `difficulty\u00a0${difficulty}`].filter(Boolean).join(" · ");
}

/** The name of a scenario, and its meaning if that is known. */
export function scenarioText(game: string, scenario: string): string {
  const meaning = gameText(game).scenarios?.[scenario];
  return meaning ? `${scenario} (${meaning})` : scenario;
}

/** A ping as text: below a millisecond there is no difference. */
export function pingText(rtt_ms: number): string {
  return rtt_ms < 1 ? "<1\u00a0ms" : `${Math.round(rtt_ms)}\u00a0ms`;
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
