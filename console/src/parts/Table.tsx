import type { ComponentChildren } from "preact";
import { Asking } from "./Notice";
import { Scroll } from "./Scroll";

export interface Heading {
  title: string;
  /** The title is read aloud, not shown. */
  spoken?: boolean;
  /** Numbers stand at the right. */
  number?: boolean;
}

export interface Column<Row> extends Heading {
  cell: (row: Row) => ComponentChildren;
  class?: string;
  /** Names its row. */
  head?: boolean;
  /** The title stands before the value too where a row is a card. */
  labelled?: boolean;
}

interface Props<Row> {
  columns: readonly Column<Row>[];
  /** Nothing while the service is asked. */
  rows: readonly Row[] | null | undefined;
  keyOf: (row: Row, position: number) => string | number;
  /** Instead of a table without rows. */
  empty?: ComponentChildren;
  /** What it is a table of: it may be wider than its place then, and scrolls. */
  label?: string;
  caption?: ComponentChildren;
  class?: string;
  /** Which row stands out. */
  chosen?: (row: Row) => boolean;
}

/** The rows of a list, a column for each thing that is said of them. */
export function Table<Row>(props: Props<Row>) {
  const { columns, rows, keyOf, empty, label, caption, chosen } = props;
  if (!rows) return <Asking />;
  if (rows.length === 0 && empty !== undefined) return <>{empty}</>;
  const table = (
    <table class={props.class}>
      {caption !== undefined && <caption>{caption}</caption>}
      <Headings of={columns} />
      <tbody>
        {rows.map((row, position) => {
          const marked = chosen?.(row) === true;
          return (
            <tr
              key={keyOf(row, position)}
              class={marked ? "chosen" : undefined}
              aria-current={marked ? "true" : undefined}
            >
              {columns.map((column) => (
                <Cell key={column.title} column={column} row={row} />
              ))}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
  return label === undefined ? table : <Scroll label={label}>{table}</Scroll>;
}

export function Headings({ of }: { of: readonly Heading[] }) {
  return (
    <thead>
      <tr>
        {of.map(({ title, spoken, number }) => (
          <th scope="col" key={title} class={number ? "number" : undefined}>
            {spoken ? <span class="spoken">{title}</span> : title}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Cell<Row>({ column, row }: { column: Column<Row>; row: Row }) {
  const kind = column.number ? "number" : column.class;
  if (column.head) {
    return (
      <th scope="row" class={kind}>
        {column.cell(row)}
      </th>
    );
  }
  return (
    <td class={kind} data-label={column.labelled ? column.title : undefined}>
      {column.cell(row)}
    </td>
  );
}
