// Short synthesised sounds. Nothing is created before the player switches the sound on.

export interface Blip {
  hz: number;
  to_hz: number;
  seconds: number;
  gain: number;
}

export class Sound {
  private context: AudioContext | null = null;

  constructor(private readonly isOn: () => boolean) {}

  /** Called in answer to a click or a key, which is when browsers allow sound. */
  wake(): void {
    if (!this.isOn()) return;
    this.context ??= new AudioContext();
    void this.context.resume();
  }

  play(blip: Blip | undefined): void {
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
