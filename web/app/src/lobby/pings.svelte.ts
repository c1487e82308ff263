// Round trips to hosts. Hosts on the page's machine have that of its gateway; others are pinged directly. Where nothing
// can be measured, there is no number.

import { socketQuery } from "../api";
import { isHere, originOf } from "./address";
import { Line } from "./line";
import { browser } from "./world";

/** Measured again after so long. */
const FRESH_MS = 30_000;

class Pings {
  /** By the host's origin; null while nothing is known. */
  private measured: Record<string, number | null> = $state({});
  private readonly asked_at_ms = new Map<string, number>();

  of(address: string | undefined, gateway_ms: number | null): number | null {
    if (!address) return null;
    if (isHere(address, location)) return gateway_ms;
    return this.measured[originOf(address, location) ?? ""] ?? null;
  }

  /** Pings the hosts that were not pinged lately. */
  measure(addresses: (string | undefined)[]): void {
    for (const address of new Set(addresses)) {
      const origin = address && !isHere(address, location) ? originOf(address, location) : null;
      if (origin && Date.now() - (this.asked_at_ms.get(origin) ?? 0) > FRESH_MS) void this.ask(origin);
    }
  }

  private async ask(origin: string): Promise<void> {
    this.asked_at_ms.set(origin, Date.now());
    const query = await socketQuery().catch(() => "");
    const line = new Line("session", `${origin}/api/session/ws${query}`, browser, {
      opened: () => {},
      told: () => line.close(),
      gone: () => {},
      measured: (rtt_ms) => {
        this.measured[origin] = rtt_ms;
        line.close();
      },
    });
  }
}

export const pings = new Pings();
