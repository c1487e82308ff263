// Client-side router. Links are ordinary links; those within the app do not reload it.

import { placeOf, type Place } from "./place";

class Router {
  place: Place = $state(placeOf(location));

  constructor() {
    addEventListener("popstate", () => (this.place = placeOf(location)));
  }

  /** `wish` is kept in the history entry: something asked for by a button, not part of the address. */
  go(address: string, wish: Wish = null): void {
    history.pushState({ wish }, "", address);
    this.place = placeOf(location);
    scrollTo(0, 0);
  }

  /** The wish of the button that led here. Returned once: a return to the page or a reload has none. */
  takeWish(): Wish {
    const wish = (history.state as { wish?: Wish } | null)?.wish ?? null;
    if (wish) history.replaceState({}, "", location.href);
    return wish;
  }

  /** Follows clicks on links of this site. */
  follow = (event: MouseEvent): void => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest("a");
    if (!link || link.target || link.origin !== location.origin) return;
    event.preventDefault();
    this.go(link.href);
  };
}

/** Begin at once, or open the invitation first. */
export type Wish = "begin" | "invite" | null;

export const router = new Router();
