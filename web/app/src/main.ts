import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import { keyInFragment } from "./place";
import { settings } from "./settings.svelte";
import { wear } from "./theme";

/** What this browser cannot do and a game cannot do without. */
function missing(): string | null {
  if (typeof WebAssembly !== "object") return "WebAssembly";
  if (typeof Worker !== "function") return "workers";
  if (typeof WebSocket !== "function") return "WebSocket";
  return null;
}

/** Takes a key out of the address, so that it is neither shown nor copied by accident. */
function takeKey(): void {
  const key = keyInFragment(location.hash);
  if (!key) return;
  settings.key = key;
  history.replaceState(history.state, "", location.pathname + location.search);
}

takeKey();
addEventListener("hashchange", takeKey);
wear(settings.theme);

const target = document.getElementById("app");
if (target) mount(App, { target, props: { missing: missing() } });
