// Prints what the module says about the games in it:
//   node builds.mjs FOLDER, the one wasm-bindgen wrote to
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";

const folder = resolve(process.argv[2] ?? ".");
const source = await readFile(resolve(folder, "sametick_web.js"), "utf8");
// Imported as text, because Node takes a plain `.js` outside a package of modules for CommonJS.
const { builds, initSync } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
initSync({ module: await readFile(resolve(folder, "sametick_web_bg.wasm")) });
console.log(builds());
