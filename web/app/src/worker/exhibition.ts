// Bots that play by themselves, at the pace of a session: what the home page shows.

import type { Demo } from "../wasm/sametick_web.js";
import { sharedNow } from "./messages";
import type { Post } from "./pump";

const TICK_MS = 1000 / 60;

/** After a longer pause the bots go on from where they were. */
const MOST_TICKS_AT_ONCE = 4;

export class Exhibition {
  private next_ms = performance.now();
  private hud = "";
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(
    private readonly demo: Demo,
    private readonly post: Post,
  ) {
    this.timer = setInterval(() => this.run(), TICK_MS);
  }

  stop(): void {
    clearInterval(this.timer);
    this.demo.free();
  }

  private run(): void {
    const now_ms = performance.now();
    this.next_ms = Math.max(this.next_ms, now_ms - MOST_TICKS_AT_ONCE * TICK_MS);
    while (this.next_ms <= now_ms) {
      this.next_ms += TICK_MS;
      this.demo.step();
      this.show();
    }
  }

  private show(): void {
    const { demo } = this;
    const hud = demo.hud();
    if (hud !== this.hud) this.post({ kind: "hud", hud: JSON.parse(hud) });
    this.hud = hud;
    const frame = demo.frame() as Float32Array<ArrayBuffer>;
    const tick = { kind: "tick", tick: demo.tick(), at_ms: sharedNow(), frame, ghost: null, events: demo.events() } as const;
    this.post(tick, [frame.buffer]);
  }
}
