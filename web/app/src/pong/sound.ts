// Sounds of pong.

import type { Blip } from "../game/sound";
import { EVENT } from "../worker/messages";

/** In the order of importance. */
const BLIPS: (Blip & { bit: number })[] = [
  { bit: EVENT.over, hz: 523, to_hz: 1046, seconds: 0.5, gain: 0.12 },
  { bit: EVENT.point, hz: 392, to_hz: 196, seconds: 0.28, gain: 0.12 },
  { bit: EVENT.serve, hz: 330, to_hz: 494, seconds: 0.09, gain: 0.08 },
  { bit: EVENT.paddle, hz: 440, to_hz: 430, seconds: 0.07, gain: 0.12 },
  { bit: EVENT.wall, hz: 262, to_hz: 255, seconds: 0.06, gain: 0.07 },
];

/** Of several events at once only the first is heard. */
export function blipOf(events: number): Blip | undefined {
  return BLIPS.find(({ bit }) => events & bit);
}
