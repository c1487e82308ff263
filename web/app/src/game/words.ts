// Texts of the game page about the connection.

import type { Brought, Diagnostics, RouteName, SaveInfo, ShownStatus } from "../worker/messages";

export const ROUTE_TEXT: Record<RouteName, string> = { webtransport: "WebTransport", websocket: "WebSocket" };

/** A traffic light with a short text. */
export interface Light {
  colour: "good" | "warn" | "bad";
  text: string;
}

export function lightOf(status: ShownStatus | null, diagnostics: Diagnostics | null): Light {
  switch (status?.state) {
    case "playing":
    case "watching": {
      const worried = diagnostics?.readings.some(({ level }) => level === "concerning") ?? false;
      const route = status.route ? ROUTE_TEXT[status.route] : "connected";
      // The link's own round trip, which is what people compare; that of inputs also waits for its tick.
      const rtt = diagnostics ? ` · ${Math.max(1, Math.round(diagnostics.link_rtt_ms))}\u00a0ms` : "";
      return { colour: worried ? "warn" : "good", text: route + rtt };
    }
    case "waiting":
      return { colour: "good", text: "waiting" };
    case "catching-up":
      return { colour: "warn", text: "catching up" };
    case "stalled":
      return { colour: "warn", text: "no news" };
    case "lost":
    case "refused":
    case "left":
      return { colour: "bad", text: "not connected" };
    default:
      return { colour: "warn", text: "connecting" };
  }
}

export type Way = "here" | "watch" | "new-session" | "reload" | "again" | "home";

export interface Notice {
  /** For tests and styles. */
  name: string;
  title: string;
  text: string;
  /** Shown over a frozen picture rather than instead of it. */
  small?: boolean;
  progress?: number;
  /** Seconds until it is too late. */
  countdown_s?: number;
  busy?: boolean;
  ways?: Way[];
}

/** The notice that keeps the player from the game, if any. */
export function noticeOf(status: ShownStatus | null, started: boolean, now_ms: number): Notice | null {
  if (!status) return { name: "loading", title: "Loading the game", text: "This takes a moment the first time.", busy: true };
  switch (status.state) {
    case "connecting":
      return connecting(status, started);
    case "joining":
      return { name: "joining", title: "Joining", text: "Connected. Taking a seat.", busy: true, small: started };
    case "waiting":
      return { name: "waiting", title: "Waiting", text: "The session begins when its players are there.", busy: true };
    case "catching-up":
      return {
        name: "catching-up",
        title: "Catching up",
        text: "Playing what happened so far, quickly, to arrive in the same state as everybody else.",
        progress: status.progress / 100,
      };
    case "stalled":
      return {
        name: "stalled",
        title: `No news for ${Math.max(1, Math.floor((now_ms - (status.silent_since_ms ?? now_ms)) / 1000))}\u00a0s`,
        text: "Still connected, but nothing arrives. This usually passes.",
        small: true,
      };
    case "lost":
      return lost(status, started, now_ms);
    case "refused":
      return refused(status);
    case "left":
      return { name: "left", title: "You have left", text: sentence(status.why), ways: ["again", "home"] };
    case "playing":
    case "watching":
      return null;
  }
}

function connecting(status: ShownStatus, started: boolean): Notice {
  const route = status.route ? ` over ${ROUTE_TEXT[status.route]}` : "";
  const again = status.attempt > 1;
  return {
    name: "connecting",
    title: again && started ? "Connecting again" : "Connecting",
    text: `Asking the server for the session${route}.`,
    busy: true,
    small: started,
  };
}

function lost(status: ShownStatus, started: boolean, now_ms: number): Notice {
  const seconds = status.retry_at_ms === null ? 0 : Math.max(0, Math.ceil((status.retry_at_ms - now_ms) / 1000));
  const next = seconds > 0 ? `Trying again in ${seconds}\u00a0s.` : "Trying again.";
  const title = started ? "Connection lost" : "No connection yet";
  // Some browsers give as the reason what the title says already.
  const why = sentence(status.why) === `${title}.` ? "" : sentence(status.why);
  return {
    name: "lost",
    title,
    text: [why, next, started && status.seat !== null ? "Then you have your seat again." : ""].filter(Boolean).join(" "),
    busy: true,
    small: started,
  };
}

/** Says that players cannot sign in on this page. */
export const SIGN_IN_TEXT =
  "On this server players sign in, with the login of the site that these games belong to. This page has no login form of its own: sign in there, and come back from there.";

/** Another page plays, and this one waits for a click: otherwise two pages would replace each other for ever. */
export const ELSEWHERE: Notice = {
  name: "elsewhere",
  title: "You play in another window",
  text: "You came to this room again, in another tab or window or on another device, and have your seat there. Nothing is lost.",
  ways: ["here", "home"],
};

function refused(status: ShownStatus): Notice {
  const why = sentence(status.why);
  if (/another connection/i.test(why)) return ELSEWHERE;
  if (/^sign in/i.test(why)) {
    return { name: "sign-in", title: "Sign in first", text: SIGN_IN_TEXT, ways: ["again", "home"] };
  }
  if (/full|taken/i.test(why)) {
    return {
      name: "refused",
      title: "The session is full",
      text: "Every seat is taken. Watch, try again when a player has left, or begin a session of your own.",
      ways: ["watch", "again", "new-session", "home"],
    };
  }
  if (/build|version|types on the wire|schema/i.test(why)) {
    return {
      name: "refused",
      title: "The server runs another build",
      text: `${why} Players of different builds never meet in one session; reloading gets the server's.`,
      ways: ["reload", "home"],
    };
  }
  return { name: "refused", title: "The server said no", text: why, ways: ["again", "new-session", "home"] };
}

/** With a full stop, and with a capital unless it only ends one. */
export function sentence(text: string, begins = true): string {
  if (!text) return "";
  const begun = begins ? text.charAt(0).toUpperCase() + text.slice(1) : text;
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

/** The text about a copy that the player has asked for. */
export function keptText(info: SaveInfo | null, why: string): string {
  return info
    ? `A copy is kept in this browser: tick ${info.tick}. It is among your saves on the first page.`
    : `No copy was kept: ${why}.`;
}

/** The result for a copy that was brought. */
export function broughtText({ taken, ours, theirs, is_same }: Brought): string {
  if (taken) return `The server had nothing of this session: it goes on from your copy, after tick ${ours}.`;
  if (!is_same) return `Your copy of tick ${ours} was not needed: another session of this name is there.`;
  const newer = ours > theirs ? ", though it is newer" : "";
  return `Your copy of tick ${ours} was not needed${newer}: the server has the session up to tick ${theirs}.`;
}
