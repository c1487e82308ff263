// Sounds of arena.

import type { Blip } from "../game/sound";
import type { Happening, What } from "./happenings";

/** In the order of importance: of several at once only the first is heard. */
const BLIPS: [What, Blip][] = [
  ["fell", { hz: 392, to_hz: 98, seconds: 0.35, gain: 0.12 }],
  ["hit", { hz: 220, to_hz: 140, seconds: 0.09, gain: 0.12 }],
  ["broke", { hz: 160, to_hz: 60, seconds: 0.2, gain: 0.1 }],
  ["built", { hz: 330, to_hz: 440, seconds: 0.07, gain: 0.08 }],
  ["fired", { hz: 880, to_hz: 330, seconds: 0.06, gain: 0.05 }],
];

export function blipOf(happened: Happening[]): Blip | undefined {
  return BLIPS.find(([heard]) => happened.some(({ what }) => what === heard))?.[1];
}
