import { effect, signal } from "@preact/signals";
import { recall, remember } from "./state/remembered";

/** Which colours are asked for; "system" follows the browser's preference. */
export type Theme = "system" | "light" | "dark";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const prefersDark = signal(dark.matches);
dark.addEventListener("change", (event) => {
  prefersDark.value = event.matches;
});

const asked = recall("theme");
export const theme = signal<Theme>(asked === "light" || asked === "dark" ? asked : "system");

/** What is shown now. */
export const shown = signal<"light" | "dark">("light");

effect(() => {
  const now = theme.value === "system" ? (prefersDark.value ? "dark" : "light") : theme.value;
  document.documentElement.dataset.theme = now;
  shown.value = now;
});
effect(() => remember("theme", theme.value === "system" ? null : theme.value));

/** A colour of the theme that is shown, for canvases. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
