import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

// The server that `npm run dev` borrows the interface and the WebSocket from.
const SERVER = "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [svelte()],
  worker: { format: "es" },
  build: {
    target: "es2022",
    // Everything is a file of its own: the server's content security policy allows no data addresses for scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    proxy: { "/api": { target: SERVER, ws: true }, "/ws": { target: SERVER, ws: true } },
  },
  test: { include: ["src/**/*.test.ts"] },
});
