// Where snapshots stand on a time line that has room for hours beside weeks: the newer, the more room.

import { span } from "../../text/quantity";

/** Seconds that have about as much room as all time before them that is e times as long. */
const NEAR = 3600;
/** The least share of the line's length between two of its marks, so that their words have room. */
const APART = 0.18;
const DAY = 86_400;
const YEAR = 31_557_600;
const AGES = [300, 900, 3600, 6 * 3600, DAY, 3 * DAY, 7 * DAY, 28 * DAY, 91 * DAY, YEAR, 5 * YEAR];

/** Where something of an age stands on a line that reaches back so far, both in seconds: 0 is the oldest, 1 is now. */
export function place(age: number, reach: number): number {
  if (!(reach > 0)) return 1;
  const inside = Math.min(Math.max(age, 0), reach);
  return 1 - Math.log1p(inside / NEAR) / Math.log1p(reach / NEAR);
}

export interface Mark {
  at: number;
  words: string;
}

/** The ages that are said along the line, from now back. */
export function marks(reach: number): readonly Mark[] {
  const found: Mark[] = [{ at: 1, words: "now" }];
  for (const age of AGES) {
    const at = place(age, reach);
    const before = found[found.length - 1]?.at ?? 1;
    // The last has half of its words to the left.
    if (age < reach && before - at >= APART && at >= APART / 2) found.push({ at, words: `${span(age)} ago` });
  }
  return found;
}
