import type { Named } from "../../api/types";

/** Data sheets of flash cards: what runs the translation layer, so what a format can be predicted of. */
export const flash = (profiles: readonly Named[] | null) =>
  (profiles ?? []).filter(({ kind }) => kind === "flash");

export const namesOf = (of: readonly { name: string }[] | null) => (of ?? []).map(({ name }) => name);

/** A name for a run that none of those that are there has. */
export function freshName(protocol: string, taken: readonly string[]): string {
  for (let number = 1; ; number += 1) {
    const name = `${protocol}-${number}`;
    if (!taken.includes(name)) return name;
  }
}
