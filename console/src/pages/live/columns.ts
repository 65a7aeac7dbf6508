import type { History } from "../../api/types";
import { addRow, type Columns, noRows } from "../../state/ring";

/** Two points that are further apart than so many of their spans have a gap between them. */
export const GAP = 2.5;

/** Columns of history, with an empty row wherever points are missing. */
export function columnsOf(history: History, metrics: readonly string[]): Columns {
  const found = noRows(metrics.length);
  const columns = metrics.map((metric) => history.values[metric]);
  for (const [row, time] of history.at.entries())
    addRow(found, time, history.resolution_s * GAP, (position) => columns[position]?.[row] ?? null);
  return found;
}
