import type { History } from "../../api/types";
import type { Columns } from "../../state/ring";

/** Two points that are further apart than so many of their spans have a gap between them. */
export const GAP = 2.5;

/** Columns of history, with an empty row wherever points are missing. */
export function columnsOf(history: History, metrics: readonly string[]): Columns {
  const at: number[] = [];
  const values = metrics.map((): (number | null)[] => []);
  for (const [row, time] of history.at.entries()) {
    const before = at[at.length - 1];
    if (before !== undefined && time - before > history.resolution_s * GAP) {
      at.push((before + time) / 2);
      for (const column of values) column.push(null);
    }
    at.push(time);
    for (const [position, metric] of metrics.entries())
      values[position]?.push(history.values[metric]?.[row] ?? null);
  }
  return { at, values };
}
