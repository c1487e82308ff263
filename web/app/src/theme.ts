// Colour theme: the system's, unless the user has chosen one.

import type { Theme } from "./settings.svelte";

const dark = matchMedia("(prefers-color-scheme: dark)");

export function isDark(theme: Theme): boolean {
  return theme === "system" ? dark.matches : theme === "dark";
}

/** Applies a theme; `system` follows the system's. Returns a function that stops following. */
export function wear(theme: Theme): () => void {
  const apply = () => {
    document.documentElement.dataset.theme = isDark(theme) ? "dark" : "light";
    dispatchEvent(new Event("themechange"));
  };
  apply();
  dark.addEventListener("change", apply);
  return () => dark.removeEventListener("change", apply);
}
