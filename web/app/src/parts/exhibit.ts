// Bots that play on the home page, computed here by the same program as a session.

import { spareEngine } from "../engine";
import type { Exhibit } from "../worker/messages";

/** Lets bots play while the page is visible, and reports every tick, until the returned function is called. */
export function exhibit(game: string, players: number, tell: (exhibit: Exhibit) => void): () => void {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const engine = spareEngine();
  const run = (players: number | null) => engine.send({ kind: "demo", game, players });
  const hear = (exhibit: Exhibit) => {
    tell(exhibit);
    // Where motion is not wanted, the first tick is the picture.
    if (still) run(null);
  };
  engine.visitors.set(game, hear);
  const look = () => run(document.hidden ? null : players);
  look();
  document.addEventListener("visibilitychange", look);
  return () => {
    document.removeEventListener("visibilitychange", look);
    // Others may look at the same game by now.
    if (engine.visitors.get(game) !== hear) return;
    engine.visitors.delete(game);
    run(null);
  };
}

/** Draws before every frame of the display, and anew in other colours, until the returned function is called. */
export function drawn<Colours>(coloursNow: () => Colours, draw: (colours: Colours) => void): () => void {
  let colours = coloursNow();
  const dress = () => (colours = coloursNow());
  addEventListener("themechange", dress);
  let next = requestAnimationFrame(function again() {
    next = requestAnimationFrame(again);
    draw(colours);
  });
  return () => {
    cancelAnimationFrame(next);
    removeEventListener("themechange", dress);
  };
}
