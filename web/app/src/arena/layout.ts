// The layout of what is over the map. It depends on the available space, not on the device: panels beside the game take some of it.

import type { Size } from "../game/canvas";

/**
 * `wide`: figures in all corners. `roomy`: the same room, with thumbs in the lower corners. `flat`: a phone that lies. `tall`: one that
 * stands. `tiny`: what is left beside an open panel on a phone.
 */
export type Layout = "wide" | "roomy" | "flat" | "tall" | "tiny";

/** From here on there is room for the leaders as well. */
const ROOMY = { w: 720, h: 480 };
/** What a phone that lies needs, for thumbs and tools side by side. */
const FLAT = { w: 540, h: 240 };
/** What a phone that stands needs. */
const TALL_W = 300;

/** Below this a phone has a smaller map in its corner. */
const SMALL = { w: 360, h: 300 };

export function layoutOf({ w, h }: Size, touch: boolean): Layout {
  if (h >= ROOMY.h && w >= ROOMY.w) return touch ? "roomy" : "wide";
  if (h >= ROOMY.h && w >= TALL_W) return "tall";
  return h >= FLAT.h && w >= FLAT.w ? "flat" : "tiny";
}

/** Whether a few of the best are always shown. */
export function hasLeaders(layout: Layout): boolean {
  return layout === "wide" || layout === "roomy";
}

/** How long a side of the small map is, in CSS pixels. */
export function minimapSide(layout: Layout, { w, h }: Size): number {
  if (layout === "wide") return Math.round(Math.min(164, h * 0.26));
  if (layout === "roomy") return 132;
  return w < SMALL.w || h < SMALL.h ? 76 : 92;
}
