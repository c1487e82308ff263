import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import { keyInFragment, tokenInFragment } from "./place";
import { settings } from "./settings.svelte";
import { wear } from "./theme";

/** The first missing browser feature that a game needs. */
function missing(): string | null {
  if (typeof WebAssembly !== "object") return "WebAssembly";
  if (typeof Worker !== "function") return "workers";
  if (typeof WebSocket !== "function") return "WebSocket";
  return null;
}

/** Takes secrets out of the address, so that they are neither shown nor copied by accident. */
function takeSecrets(): void {
  const [key, token] = [keyInFragment(location.hash), tokenInFragment(location.hash)];
  if (!key && !token) return;
  if (key) settings.key = key;
  if (token) settings.offered_token = token;
  history.replaceState(history.state, "", location.pathname + location.search);
}

takeSecrets();
addEventListener("hashchange", takeSecrets);
wear(settings.theme);

const target = document.getElementById("app");
if (target) mount(App, { target, props: { missing: missing() } });
