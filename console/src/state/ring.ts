/** Columns of numbers over time that keep the newest rows only: memory does not grow with the hours that a page is open. */
export class Ring {
  private readonly at: Float64Array;
  private readonly columns = new Map<string, Float64Array>();
  private next = 0;
  private held = 0;

  constructor(readonly capacity: number) {
    this.at = new Float64Array(capacity);
  }

  get length(): number {
    return this.held;
  }

  /** Names of the columns that ever had a value. */
  get names(): string[] {
    return [...this.columns.keys()];
  }

  /** Time of the newest row, or null. */
  get newest(): number | null {
    return this.held === 0 ? null : (this.at[(this.next + this.capacity - 1) % this.capacity] ?? null);
  }

  /** Time of the oldest row, or null. */
  get oldest(): number | null {
    return this.held === 0 ? null : (this.at[this.index(0)] ?? null);
  }

  private index(row: number): number {
    return (this.next + this.capacity - this.held + row) % this.capacity;
  }

  /** Adds a row, unless it is not newer than the newest. */
  push(at: number, values: Readonly<Record<string, number | boolean | null | undefined>>): void {
    const newest = this.newest;
    if (newest !== null && at <= newest) return;
    this.at[this.next] = at;
    for (const column of this.columns.values()) column[this.next] = Number.NaN;
    for (const [name, value] of Object.entries(values)) {
      if (value === null || value === undefined) continue;
      let column = this.columns.get(name);
      if (column === undefined) {
        column = new Float64Array(this.capacity).fill(Number.NaN);
        this.columns.set(name, column);
      }
      column[this.next] = Number(value);
    }
    this.next = (this.next + 1) % this.capacity;
    this.held = Math.min(this.held + 1, this.capacity);
  }

  /** Adds the rows of a table of columns, as far as they are from before a moment. */
  append(
    at: readonly number[],
    columns: Readonly<Record<string, readonly (number | null)[]>>,
    before = Number.POSITIVE_INFINITY,
  ): void {
    const named = Object.entries(columns);
    for (const [row, time] of at.entries()) {
      if (time >= before) break;
      this.push(time, Object.fromEntries(named.map(([name, column]) => [name, column[row]])));
    }
  }

  has(name: string): boolean {
    return this.columns.has(name);
  }

  /** The rows from one moment to another, as columns. Where rows are more than `gap` apart, an empty one parts them. */
  slice(names: readonly string[], from: number, to: number, gap = Number.POSITIVE_INFINITY): Columns {
    const found = noRows(names.length);
    const kept = names.map((name) => this.columns.get(name));
    for (let row = this.firstFrom(from); row < this.held; row += 1) {
      const index = this.index(row);
      const time = this.at[index] ?? 0;
      if (time > to) break;
      addRow(found, time, gap, (position) => {
        const value = kept[position]?.[index];
        return value === undefined || Number.isNaN(value) ? null : value;
      });
    }
    return found;
  }

  /** The first row at or after a moment. */
  private firstFrom(from: number): number {
    let low = 0;
    let high = this.held;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.at[this.index(middle)] ?? 0) < from) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export interface Columns {
  at: number[];
  values: (number | null)[][];
}

export const noRows = (columns: number): Columns => ({
  at: [],
  values: Array.from({ length: columns }, () => []),
});

/** Adds a row behind the others. Where it is more than `gap` behind the last, an empty one parts them. */
export function addRow(
  { at, values }: Columns,
  time: number,
  gap: number,
  valueAt: (column: number) => number | null,
): void {
  const before = at[at.length - 1];
  if (before !== undefined && time - before > gap) {
    at.push((before + time) / 2);
    for (const column of values) column.push(null);
  }
  at.push(time);
  for (const [position, column] of values.entries()) column.push(valueAt(position));
}
