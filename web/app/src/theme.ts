// Light or dark: what the system says, unless somebody chose.

import type { Theme } from "./settings.svelte";

const dark = matchMedia("(prefers-color-scheme: dark)");

export function isDark(theme: Theme): boolean {
  return theme === "system" ? dark.matches : theme === "dark";
}

/** Puts a theme on, and follows the system while it is `system`. Returns how to stop following. */
export function wear(theme: Theme): () => void {
  const apply = () => {
    document.documentElement.dataset.theme = isDark(theme) ? "dark" : "light";
    dispatchEvent(new Event("themechange"));
  };
  apply();
  dark.addEventListener("change", apply);
  return () => dark.removeEventListener("change", apply);
}
