// The last minute of a session's figures, for charts. Counts that only grow become rates.

import type { Diagnostics, RoomFigures } from "../worker/messages";

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
  "snapshot_bytes",
  "buffer_ms",
  "delay_ms",
  "error_ms",
  "mean_error_ms",
  "updates_lost",
  "snaps",
  "frozen",
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
    const rate: Rate = (now, before = now) => (gap || now < before ? null : (now - before) / seconds);
    const before = last?.diagnostics;
    const own = diagnostics.room
      ? inRoom(diagnostics.room, before?.room ?? undefined, rate)
      : inLockstep(diagnostics, before, rate);
    this.points.push({
      ...hole(at_s),
      ...own,
      rtt_ms: diagnostics.rtt_ms,
      link_rtt_ms: diagnostics.link_rtt_ms,
      jitter_ms: diagnostics.jitter_ms,
      omissions: rate(diagnostics.omissions, before?.omissions),
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

  /** The mean of a series over the last seconds. */
  mean(name: SeriesName, seconds: number): number | null {
    const values = this.points
      .filter(({ at_s }) => at_s > this.newest_s - seconds)
      .map((point) => point[name])
      .filter((value) => value !== null);
    return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
  }
}

/** How fast a count grows. */
type Rate = (now: number, before?: number) => number | null;

function inLockstep(now: Diagnostics, before: Diagnostics | undefined, rate: Rate): Partial<Point> {
  const { depth, network_deficit, cpu_deficit } = now;
  return { depth, network_deficit, cpu_deficit, rollbacks: rate(now.rollbacks, before?.rollbacks) };
}

function inRoom(now: RoomFigures, before: RoomFigures | undefined, rate: Rate): Partial<Point> {
  const { snapshot_bytes, buffer_ms, delay_ms, reconciliation_ms } = now;
  return {
    snapshot_bytes,
    buffer_ms,
    delay_ms,
    error_ms: reconciliation_ms.last,
    mean_error_ms: reconciliation_ms.mean,
    updates_lost: rate(now.updates_lost, before?.updates_lost),
    snaps: rate(now.snaps, before?.snaps),
    frozen: rate(now.frozen_ms, before?.frozen_ms),
  };
}

function hole(at_s: number): Point {
  const empty = Object.fromEntries(SERIES.map((name) => [name, null])) as Record<SeriesName, null>;
  return { at_s, ...empty };
}
