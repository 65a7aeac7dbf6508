import { plain } from "./field";

/** Whether every word occurs in one of these values, whatever its case. Without words everything is found. */
export function matches(words: string, values: readonly unknown[]): boolean {
  const text = values.map(plain).join(" ").toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
