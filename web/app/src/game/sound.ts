// Short blips, made on the spot. Nothing is created before somebody switches the sound on.

import { EVENT } from "../worker/messages";

interface Blip {
  bit: number;
  hz: number;
  to_hz: number;
  seconds: number;
  gain: number;
}

/** In the order of importance: of several at once only the first is heard. */
const BLIPS: Blip[] = [
  { bit: EVENT.over, hz: 523, to_hz: 1046, seconds: 0.5, gain: 0.12 },
  { bit: EVENT.point, hz: 392, to_hz: 196, seconds: 0.28, gain: 0.12 },
  { bit: EVENT.serve, hz: 330, to_hz: 494, seconds: 0.09, gain: 0.08 },
  { bit: EVENT.paddle, hz: 440, to_hz: 430, seconds: 0.07, gain: 0.12 },
  { bit: EVENT.wall, hz: 262, to_hz: 255, seconds: 0.06, gain: 0.07 },
];

export class Sound {
  private context: AudioContext | null = null;

  constructor(private readonly isOn: () => boolean) {}

  /** Called in answer to a click or a key, which is when browsers allow sound. */
  wake(): void {
    if (!this.isOn()) return;
    this.context ??= new AudioContext();
    void this.context.resume();
  }

  play(events: number): void {
    const blip = BLIPS.find(({ bit }) => events & bit);
    if (!blip || !this.isOn() || this.context?.state !== "running") return;
    const { context } = this;
    const now = context.currentTime;
    const voice = context.createOscillator();
    const volume = context.createGain();
    voice.type = "triangle";
    voice.frequency.setValueAtTime(blip.hz, now);
    voice.frequency.exponentialRampToValueAtTime(blip.to_hz, now + blip.seconds);
    volume.gain.setValueAtTime(blip.gain, now);
    volume.gain.exponentialRampToValueAtTime(0.0001, now + blip.seconds);
    voice.connect(volume).connect(context.destination);
    voice.start(now);
    voice.stop(now + blip.seconds);
  }

  close(): void {
    void this.context?.close();
  }
}
