// Prints the hash after every tick of a log, replayed as wasm, in the same lines as the example `replay`:
//   node replay.mjs MODULE.wasm FILE
import { readFile } from "node:fs/promises";

const [path, file] = process.argv.slice(2);
if (!path || !file) {
  console.error("usage: node replay.mjs MODULE.wasm FILE");
  process.exit(1);
}

const { instance } = await WebAssembly.instantiate(await readFile(path), {});
const { sametick_log_byte, sametick_replay, sametick_replay_checks, sametick_replay_hash } = instance.exports;
for (const byte of await readFile(file)) sametick_log_byte(byte);

// wasm returns i64 as a signed BigInt.
const hex = (word) => BigInt.asUintN(64, word).toString(16).padStart(16, "0");
const ticks = sametick_replay();
const lines = Array.from({ length: ticks }, (_, at) => `${at + 1} ${hex(sametick_replay_hash(at + 1))}\n`);
process.stdout.write(`${lines.join("")}checks ${sametick_replay_checks()}\n`);
