// Bots that play at the rate of a session, shown on the home page.

import type { Demo } from "../wasm/sametick_web.js";
import { sharedNow } from "./messages";
import type { Post } from "./pump";

/** After a longer pause the bots go on from where they were. */
const MOST_TICKS_AT_ONCE = 4;

export class Exhibition {
  private next_ms = performance.now();
  private hud = "";
  private readonly tick_ms: number;
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(
    private readonly game: string,
    private readonly demo: Demo,
    private readonly post: Post,
  ) {
    this.tick_ms = 1000 / demo.ticks_per_second();
    this.timer = setInterval(() => this.run(), this.tick_ms);
  }

  stop(): void {
    clearInterval(this.timer);
    this.demo.free();
  }

  private run(): void {
    const now_ms = performance.now();
    this.next_ms = Math.max(this.next_ms, now_ms - MOST_TICKS_AT_ONCE * this.tick_ms);
    while (this.next_ms <= now_ms) {
      this.next_ms += this.tick_ms;
      this.demo.step();
      this.show();
    }
  }

  private show(): void {
    const { demo, game } = this;
    const hud = demo.hud();
    const changed = hud !== this.hud;
    this.hud = hud;
    const frame = demo.frame() as Float32Array<ArrayBuffer>;
    const tick = { kind: "tick", tick: demo.tick(), at_ms: sharedNow(), frame, ghost: null, events: demo.events() } as const;
    this.post({ kind: "exhibit", game, tick, hud: changed ? JSON.parse(hud) : null }, [frame.buffer]);
  }
}
