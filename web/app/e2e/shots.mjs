// Screenshots of a page, in light and in dark, for review; a program only checks that nothing overflows at the side.

import assert from "node:assert/strict";
import path from "node:path";
import { DESKTOP, OUT, PHONE } from "./story.mjs";

export const FOLDER = path.join(OUT, "shots");
export const SIZES = {
  desktop: { viewport: DESKTOP },
  phone: { viewport: PHONE, deviceScaleFactor: 2, hasTouch: true, isMobile: true },
};

export async function shoot(player, size, state) {
  for (const colorScheme of ["light", "dark"]) {
    await player.page.emulateMedia({ colorScheme });
    await player.page.screenshot({
      path: path.join(FOLDER, `${state}-${size}-${colorScheme}.png`),
      // What fades in or changes its colour is shown as it will be.
      animations: "disabled",
      fullPage: /^(home|session)/.test(state),
    });
  }
  const wide = await player.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${state} sticks out by ${wide} pixels on a ${size}`);
}
