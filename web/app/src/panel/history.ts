// The last minute of a session's figures, for charts. Counts that only grow become rates.

import type { Diagnostics } from "../worker/messages";

export const WINDOW_S = 60;
const PER_SECOND = 4;
const KEPT = WINDOW_S * PER_SECOND + 8;

/** More than this between two figures is a gap, not a slow rate. */
const GAP_S = 2.5;

export const SERIES = [
  "rtt_ms",
  "link_rtt_ms",
  "jitter_ms",
  "depth",
  "rollbacks",
  "omissions",
  "network_deficit",
  "cpu_deficit",
  "kb_in",
  "kb_out",
] as const;
export type SeriesName = (typeof SERIES)[number];

type Point = { at_s: number } & Record<SeriesName, number | null>;

export class History {
  private points: Point[] = [];
  private last: { at_s: number; diagnostics: Diagnostics } | null = null;

  add(diagnostics: Diagnostics, at_ms: number): void {
    const at_s = at_ms / 1000;
    const { last } = this;
    this.last = { at_s, diagnostics };
    const seconds = last ? at_s - last.at_s : 0;
    const gap = seconds <= 0 || seconds > GAP_S;
    if (last && gap) this.points.push(hole(last.at_s + 0.01));
    // A count that fell belongs to a session that began anew.
    const rate = (now: number, before = now) => (gap || now < before ? null : (now - before) / seconds);
    const before = last?.diagnostics;
    this.points.push({
      at_s,
      rtt_ms: diagnostics.rtt_ms,
      link_rtt_ms: diagnostics.link_rtt_ms,
      jitter_ms: diagnostics.jitter_ms,
      depth: diagnostics.depth,
      rollbacks: rate(diagnostics.rollbacks, before?.rollbacks),
      omissions: rate(diagnostics.omissions, before?.omissions),
      network_deficit: diagnostics.network_deficit,
      cpu_deficit: diagnostics.cpu_deficit,
      kb_in: rate(diagnostics.bytes_in / 1000, before && before.bytes_in / 1000),
      kb_out: rate(diagnostics.bytes_out / 1000, before && before.bytes_out / 1000),
    });
    if (this.points.length > KEPT) this.points.splice(0, this.points.length - KEPT);
  }

  get newest_s(): number {
    return this.last?.at_s ?? 0;
  }

  /** Columns as a chart wants them: seconds before the newest, then a column for each name. */
  columns(names: readonly SeriesName[]): [number[], ...(number | null)[][]] {
    const seconds = this.points.map(({ at_s }) => at_s - this.newest_s);
    return [seconds, ...names.map((name) => this.points.map((point) => point[name]))];
  }

  /** The newest figure of a series. */
  newest(name: SeriesName): number | null {
    return this.points.at(-1)?.[name] ?? null;
  }
}

function hole(at_s: number): Point {
  const empty = Object.fromEntries(SERIES.map((name) => [name, null])) as Record<SeriesName, null>;
  return { at_s, ...empty };
}
