// Prints the result of a run of the conformance game as wasm, in the same line of JSON as the example `hashes`:
//   node run.mjs MODULE.wasm SEED TICKS
import { readFile } from "node:fs/promises";

const [path, seed, ticks] = process.argv.slice(2);
if (!path || !/^\d+$/.test(seed ?? "") || !/^\d+$/.test(ticks ?? "")) {
  console.error("usage: node run.mjs MODULE.wasm SEED TICKS");
  process.exit(1);
}

const { instance } = await WebAssembly.instantiate(await readFile(path), {});
const { sametick_chain, sametick_last, sametick_talk, sametick_pong, sametick_session } = instance.exports;
const { sametick_arena, sametick_room, sametick_build, sametick_schema } = instance.exports;

// wasm returns i64 as a signed BigInt.
const hex = (word) => BigInt.asUintN(64, word).toString(16).padStart(16, "0");
const words = (call, count) => Array.from({ length: count }, (_, word) => hex(call(word))).join("");

const low = Number(BigInt.asUintN(32, BigInt(seed)));
const high = Number(BigInt.asUintN(32, BigInt(seed) >> 32n));
console.log(
  JSON.stringify({
    seed,
    ticks: Number(ticks),
    hash: hex(sametick_chain(low, high, Number(ticks))),
    last: hex(sametick_last(low, high, Number(ticks))),
    talk: hex(sametick_talk(low, high, Number(ticks))),
    pong: hex(sametick_pong(low, high, Number(ticks))),
    session: hex(sametick_session(low, high, Number(ticks))),
    arena: hex(sametick_arena(low, high, Number(ticks))),
    room: hex(sametick_room(low, high, Number(ticks))),
    build: words(sametick_build, 2),
    schema: words(sametick_schema, 4),
  }),
);
