// Texts of pong.

import type { PongHud, SeatHud } from "../worker/messages";

export const YOU = " (you)";

export function label(seat: SeatHud): string {
  if (seat.you) return `${seat.name ?? "You"}${YOU}`;
  if (seat.driver === "player") return seat.name ?? `Player ${seat.seat + 1}`;
  return seat.driver === "bot" ? "Bot" : "Free seat";
}

/** What the game waits for; empty while the ball is in play. In `once` games, a rematch is decided elsewhere. */
export function promptOf(hud: PongHud, touch: boolean): string {
  const press = touch ? "Tap" : "Press space";
  const own = hud.seats.find(({ you }) => you);
  const missing = hud.seats.filter(({ driver }) => driver === "nobody").length;
  switch (hud.phase) {
    case "waiting":
      if (missing > 0) return `Waiting for ${missing} more ${missing === 1 ? "player" : "players"}`;
      if (!own) return "The game is about to begin";
      if (own.ready) return "Ready. Waiting for the others";
      return `${press} to begin${withBots(hud)}`;
    case "serving": {
      if (hud.countdown !== null) return own && hud.server === own.seat ? "Get ready to serve" : "Get ready";
      if (own && hud.server === own.seat) return `${press} to serve`;
      const server = hud.seats.find(({ seat }) => seat === hud.server);
      return server ? `${label(server)} serves` : "";
    }
    case "over":
      if (!own || hud.once) return "";
      return own.ready ? "Waiting for the others" : `${press} to play again`;
    case "playing":
    case "pause":
      return "";
  }
}

function withBots(hud: PongHud): string {
  const bots = hud.seats.filter(({ driver }) => driver === "bot").length;
  return bots === 0 ? "" : bots === 1 ? " with a bot" : " with bots";
}

/** The text about the winner, while the game is over. */
export function resultOf(hud: PongHud): string {
  if (hud.phase !== "over") return "";
  const winner = hud.seats.find(({ seat }) => seat === hud.winner);
  if (!winner) return "The game is over";
  return winner.you ? "You win" : `${label(winner)} wins`;
}

export function scoreText(hud: PongHud): string {
  return hud.seats.map((seat) => `${label(seat)} ${seat.score}`).join(", ");
}

/** For the title of the page. */
export function shortScore(hud: PongHud): string {
  return hud.seats.map(({ score }) => score).join(" : ");
}

/** For screen readers. */
export function saidOf(hud: PongHud): string {
  return `${resultOf(hud)} ${promptOf(hud, false)} ${hud.countdown ?? ""}`.trim();
}
