// The condition of a room: figures with ranges, and a sentence.

import type { Diagnostics, Level, Reading, RoomFigures } from "../worker/messages";
import type { History } from "./history";

/** Counts that only grow are measured over this many seconds. */
const RECENTLY_S = 3;

/** An update has at most so many bytes. */
const MOST_BYTES = 1000;
const FULL_BYTES = 900;
const MOST_KB_S = 10;

/** How long others may stand still within a second before it is noticeable. */
const MOST_FROZEN_MS_S = 40;

/** The mean prediction error that is not yet noticeable. */
const MOST_ERROR_MS = 30;

/** A player who is shot is corrected at once; more corrections than that are a fault. */
const MOST_SNAPS_S = 0.7;
const MOST_LOST_S = 0.5;
const MOST_LOSS_PERCENT = 1;

export const ALL_IS_WELL = "Everything is as it should be.";

/** The same figures with what they mean. */
export function explained(diagnostics: Diagnostics, room: RoomFigures, history: History): Diagnostics {
  const readings = readingsOf(diagnostics, room, history);
  const verdict = readings.find(({ level }) => level === "concerning")?.verdict ?? ALL_IS_WELL;
  return { ...diagnostics, readings, verdict };
}

/** Causes before their effects. */
function readingsOf(diagnostics: Diagnostics, room: RoomFigures, history: History): Reading[] {
  const { link_rtt_ms, jitter_ms, loss_percent, omissions } = diagnostics;
  const { last, mean, max } = room.reconciliation_ms;
  const recently = (name: Parameters<History["mean"]>[0]) => history.mean(name, RECENTLY_S) ?? 0;
  return [
    reading("packet_loss", percent(loss_percent), "up to 1 %", loss_percent > MOST_LOSS_PERCENT, [
      "Next to nothing is lost on its way.",
      "Packets are lost on their way to the server or back.",
    ]),
    reading("updates_lost", `${room.updates_lost} in all`, "few", recently("updates_lost") > MOST_LOST_S, [
      "Updates arrive; one that is lost is made up for by the next.",
      "Updates are lost or come too late: the next one makes up for each.",
    ]),
    reading(
      "interpolation_buffer",
      `${ms(room.buffer_ms)} of ${ms(room.delay_ms)}`,
      `0 to ${ms(room.delay_ms)}, seldom empty`,
      recently("frozen") > MOST_FROZEN_MS_S,
      ["There is always something to show of the others.", "Updates come too late: others stand still now and then."],
    ),
    reading("reconciliation_error", `${ms(last)} (mean ${ms(mean)}, most ${ms(max)})`, "up to 30 ms on average", mean > MOST_ERROR_MS, [
      "What you see of yourself is what the server says.",
      "The server often says otherwise than you see yourself: inputs do not get there in time.",
    ]),
    reading("corrections", `${room.corrections}, ${room.snaps} of them jumps`, "jumps only when shot", recently("snaps") > MOST_SNAPS_S, [
      "Small differences are blended away.",
      "You are being set right by jumps: the way to the server is very uneven.",
    ]),
    reading("omissions", `${omissions} in all`, "none", recently("omissions") > 0, [
      "Every input reached the server in time.",
      "Inputs reached the server too late and did nothing; they are being sent earlier now.",
    ]),
    reading("round_trip", `${ms(link_rtt_ms)}, jitter ${ms(jitter_ms)}`, "steady, whatever it is", false, [
      "How far away the server is: your own moves do not wait for it.",
      "",
    ]),
    reading("snapshot", `${room.snapshot_bytes} bytes`, `up to ${MOST_BYTES} bytes`, room.snapshot_bytes > FULL_BYTES, [
      "Only what has changed around you is sent.",
      "Updates are as large as they may be: what is far away is told a little later.",
    ]),
    reading(
      "bandwidth",
      `${(room.bytes_per_second / 1000).toFixed(1)} kB/s`,
      `up to ${MOST_KB_S} kB/s`,
      room.bytes_per_second > MOST_KB_S * 1000,
      ["Updates take next to nothing of this connection.", "Updates take more than they should."],
    ),
    reading("saved", ago(room.saved_ms), "a second or two after a change", false, [
      "Where you are, what you have built and what your characters have done outlives the server up to then.",
      "",
    ]),
    reading("entities", String(room.entities), "what is around you", false, ["So many things around you are known here.", ""]),
  ];
}

function reading(metric: string, value: string, normal: string, concerns: boolean, [fine, worry]: [string, string]): Reading {
  const level: Level = concerns ? "concerning" : "normal";
  return { metric, value, normal, level, verdict: concerns ? worry : fine };
}

function ago(saved_ms: number | null): string {
  return saved_ms === null ? "not yet" : `${(saved_ms / 1000).toFixed(saved_ms < 9_950 ? 1 : 0)} s ago`;
}

function ms(value: number): string {
  return `${value < 10 && value > 0 ? value.toFixed(1) : Math.round(value)} ms`;
}

function percent(value: number): string {
  return `${value.toFixed(1)} %`;
}
