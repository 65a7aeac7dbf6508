import { useEffect, useId, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Columns } from "../state/ring";
import { clock, day, moment } from "../text/moment";
import { quantity } from "../text/quantity";
import { colour, shown } from "../theme";
import { type Column, Table } from "./Table";

export interface Line {
  metric: string;
  label: string;
  /** Which of the theme's colours. */
  tone: number;
  /** A limit rather than something measured: drawn thin and long-dashed. */
  limit?: boolean;
}

interface Props {
  title: string;
  unit: string;
  lines: readonly Line[];
  data: Columns;
  from: number;
  to: number;
  /** Ten times more is one step up. */
  logarithmic?: boolean | undefined;
  /** The highest value that the axis shows at least. */
  atLeast?: number | undefined;
  /** Where the figures come from, when not measured. */
  note?: string | undefined;
  onZoom: (from: number, to: number) => void;
}

/** The first two lines differ enough by their colours, for every kind of colour vision. */
const DASHES: readonly (readonly number[])[] = [[], [], [6, 3], [2, 3]];
const HEIGHT = 170;
const FONT = '11px "Inter", system-ui, sans-serif';

function dash(line: Line, position: number): number[] {
  return [...(line.limit ? [10, 6] : (DASHES[position % DASHES.length] ?? []))];
}

/** A chart over time. Lines differ by dashes as well as colour; what they say stands in the legend and in a table too. */
export function Chart(props: Props) {
  const { title, unit, lines, data, from, to, logarithmic = false, atLeast, note, onZoom } = props;
  const id = useId();
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const zoom = useRef(onZoom);
  zoom.current = onZoom;
  const [cursor, setCursor] = useState<number | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const theme = shown.value;
  const shape = lines.map((line) => `${line.metric}:${line.tone}`).join();

  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for `lines`; data and range are set below.
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const axis = {
      stroke: colour("muted"),
      font: FONT,
      grid: { stroke: colour("line"), width: 1 },
      ticks: { show: false },
    };
    const options: uPlot.Options = {
      width: element.clientWidth,
      height: HEIGHT,
      padding: [8, 16, 0, 0],
      legend: { show: false },
      cursor: {
        sync: { key: "time" },
        drag: { x: true, y: false, setScale: false },
        points: { size: 6 },
      },
      scales: {
        x: { time: true, auto: false },
        y: logarithmic
          ? { distr: 3, log: 10, range: (_, low, high) => decades(low, high) }
          : {
              range: (_, low, high) => [
                Math.min(0, low ?? 0),
                Math.max(atLeast ?? 0, (high ?? 0) <= (atLeast ?? 0) ? 0 : ceiling(high ?? 0)) || 1,
              ],
            },
      },
      axes: [
        {
          ...axis,
          space: 60,
          size: 26,
          values: (_, ticks, __, ___, step) => ticks.map((tick) => timeTick(tick, step)),
        },
        {
          ...axis,
          // Of a logarithmic axis only the tens: lines between them would hide the curves.
          ...(logarithmic ? { grid: { ...axis.grid, filter: tens }, filter: tens } : {}),
          size: 62,
          space: 28,
          values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : quantity(unit, tick))),
        },
      ],
      series: [
        {},
        ...lines.map(
          (line, position): uPlot.Series => ({
            label: line.label,
            stroke: colour(`c${line.tone}`),
            width: line.limit ? 1 : 1.5,
            dash: dash(line, position),
            points: { show: false, size: 4, filter: (plot, series) => alone(plot.data[series] ?? []) },
            spanGaps: false,
            show: !hidden.has(line.metric),
          }),
        ),
      ],
      hooks: {
        setCursor: [(u) => setCursor(u.cursor.idx ?? null)],
        setSelect: [
          (u) => {
            if (u.select.width < 4) return;
            const left = u.posToVal(u.select.left, "x");
            const right = u.posToVal(u.select.left + u.select.width, "x");
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            zoom.current(left, right);
          },
        ],
      },
    };
    const made = new uPlot(options, [[], ...lines.map(() => [])] as uPlot.AlignedData, element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, unit, logarithmic, atLeast, theme]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: after the chart was made anew, it needs its data again.
  useEffect(() => {
    const made = plot.current;
    if (made === null) return;
    const values = logarithmic
      ? data.values.map((column) => column.map((v) => (v !== null && v > 0 ? v : null)))
      : data.values;
    made.batch(() => {
      made.setData([data.at, ...values] as uPlot.AlignedData, false);
      made.setScale("x", { min: from, max: to });
    });
  }, [data, from, to, shape, unit, logarithmic, atLeast, theme]);

  const toggle = (line: Line, position: number) => {
    const next = new Set(hidden);
    if (!next.delete(line.metric)) next.add(line.metric);
    setHidden(next);
    plot.current?.setSeries(position + 1, { show: !next.has(line.metric) });
  };

  const at = cursor !== null && cursor < data.at.length ? cursor : null;
  const empty = data.values.every((column) => column.every((value) => value === null));
  return (
    <figure class="panel chart" aria-labelledby={id}>
      <header>
        <h2 id={id}>
          {title}
          {note && <span class="muted small"> · {note}</span>}
        </h2>
        <span class="muted small">{at !== null ? moment((data.at[at] ?? 0) * 1000) : ""}</span>
      </header>
      <ul class="legend">
        {lines.map((line, position) => {
          const column = data.values[position] ?? [];
          const shownValue = at !== null ? column[at] : lastOf(column);
          return (
            <li key={line.metric}>
              <button
                type="button"
                aria-pressed={!hidden.has(line.metric)}
                onClick={() => toggle(line, position)}
              >
                <svg width="18" height="8" aria-hidden="true">
                  <path
                    d="M0 4H18"
                    stroke={`var(--c${line.tone})`}
                    stroke-width="2"
                    stroke-dasharray={dash(line, position).join(" ")}
                  />
                </svg>
                {line.label} <b>{quantity(unit, shownValue)}</b>
              </button>
            </li>
          );
        })}
      </ul>
      <div class="plot" ref={place}>
        {empty && <p class="none">No figures in this span</p>}
      </div>
      <Summary title={title} unit={unit} lines={lines} data={data} />
    </figure>
  );
}

/** The points with none beside them: no line is drawn through them. */
function alone(column: ArrayLike<number | null | undefined>): number[] {
  const there = (index: number) => column[index] !== null && column[index] !== undefined;
  return Array.from(column, (_, index) => index).filter(
    (index) => there(index) && !there(index - 1) && !there(index + 1),
  );
}

function lastOf(column: readonly (number | null)[]): number | null {
  for (let row = column.length - 1; row >= Math.max(0, column.length - 5); row -= 1) {
    const value = column[row];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}

/** A line in few numbers. */
interface Summed {
  line: Line;
  last: number | undefined;
  least: number;
  mean: number;
  most: number;
}

function summed(line: Line, column: readonly (number | null)[]): Summed {
  const known = column.filter((value) => value !== null);
  return {
    line,
    last: known[known.length - 1],
    least: known.reduce((low, value) => Math.min(low, value), Number.POSITIVE_INFINITY),
    mean: known.reduce((total, value) => total + value, 0) / known.length,
    most: known.reduce((high, value) => Math.max(high, value), Number.NEGATIVE_INFINITY),
  };
}

/** What the lines did in the span, for those who do not see them. Worked out only while it is open. */
function Summary({ title, unit, lines, data }: Pick<Props, "title" | "unit" | "lines" | "data">) {
  const [open, setOpen] = useState(false);
  const columns: Column<Summed>[] = [
    { title: "Line", head: true, cell: ({ line }) => line.label },
    { title: "Last", number: true, cell: ({ last }) => quantity(unit, last) },
    { title: "Least", number: true, cell: ({ least }) => quantity(unit, least) },
    { title: "Mean", number: true, cell: ({ mean }) => quantity(unit, mean) },
    { title: "Most", number: true, cell: ({ most }) => quantity(unit, most) },
  ];
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Figures<span class="spoken"> of {title}</span>
      </summary>
      {open && (
        <Table
          label={`Figures of ${title}`}
          caption={
            <>
              {data.at.length} points, {clock((data.at[0] ?? 0) * 1000)} to{" "}
              {clock((data.at[data.at.length - 1] ?? 0) * 1000)}
            </>
          }
          rows={lines.map((line, position) => summed(line, data.values[position] ?? []))}
          keyOf={({ line }) => line.metric}
          columns={columns}
        />
      )}
    </details>
  );
}

/** A moment on the axis: as exact as the steps are. */
function timeTick(seconds: number, step: number): string {
  const ms = seconds * 1000;
  if (step >= 86_400) return day(ms).slice(5);
  const time = clock(ms);
  if (step >= 60) return time === "00:00:00" ? day(ms).slice(5) : time.slice(0, 5);
  return time;
}

const tens = (_: uPlot, ticks: number[]) => ticks.map((tick) => (Math.log10(tick) % 1 === 0 ? tick : null));

/** A round number at or above a value, so that the axis stands still while the line moves. */
function ceiling(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value * 1.02) ?? 15;
  return step * power;
}

function decades(low: number | null, high: number | null): [number, number] {
  const bottom = 10 ** Math.floor(Math.log10(Math.max(low ?? 1, 0.1)));
  const top = 10 ** Math.ceil(Math.log10(Math.max(high ?? 1000, bottom * 10)));
  return [bottom, top];
}
