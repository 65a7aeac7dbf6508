import { useMemo, useState } from "preact/hooks";
import { Button } from "../parts/Button";
import { Chart } from "../parts/Chart";
import { Empty, Notice } from "../parts/Notice";
import { Switches } from "../parts/Switches";
import { metrics, ring, SERVICE } from "../state/telemetry";
import { moment } from "../text/moment";
import { span as spanText } from "../text/quantity";
import { PLANS, type Plan, SPANS } from "./live/charts";
import { type Range, useView, type View } from "./live/window";

const MOVES = [
  { label: "Zoom in", sign: "+", factor: 0.5, share: 0 },
  { label: "Zoom out", sign: "−", factor: 2, share: 0 },
  { label: "Earlier", sign: "‹", factor: 1, share: -0.5 },
  { label: "Later", sign: "›", factor: 1, share: 0.5 },
];

export function LivePage({ subject }: { subject: string }) {
  const [seconds, setSeconds] = useState(300);
  const [paused, setPaused] = useState(false);
  const [zoomed, setZoomed] = useState<Range | null>(null);
  const view = useView(subject, seconds, zoomed, paused);
  const zoom = (from: number, to: number) => setZoomed({ from, to });
  /** Widens the range, or moves it by a share of its width. */
  const move = (factor: number, share: number) => {
    const width = view.to - view.from;
    const middle = (view.from + view.to) / 2 + width * share;
    const half = Math.max(2.5, (width / 2) * factor);
    zoom(middle - half, middle + half);
  };
  return (
    <>
      <div class="bar row">
        <Switches
          label="Span"
          value={zoomed ? null : seconds}
          of={SPANS.map(({ label, spoken, seconds }) => ({ value: seconds, label, spoken }))}
          onChange={(chosen) => {
            setSeconds(chosen);
            setZoomed(null);
            setPaused(false);
          }}
        />
        <button
          type="button"
          aria-pressed={paused}
          onClick={() => setPaused(!paused)}
          disabled={zoomed !== null}
        >
          {paused ? "Go on" : "Pause"}
        </button>
        <fieldset class="switches" aria-label="Zoom">
          {MOVES.map(({ label, sign, factor, share }) => (
            <button type="button" key={label} aria-label={label} onClick={() => move(factor, share)}>
              {sign}
            </button>
          ))}
          {zoomed && <Button onClick={() => setZoomed(null)}>Back to now</Button>}
        </fieldset>
        <span class="muted small push">
          {zoomed || paused ? `${moment(view.from * 1000)} to ${moment(view.to * 1000)} · ` : ""}
          {view.resolution === 1 ? "second by second" : `a point stands for ${spanText(view.resolution)}`}
        </span>
      </div>
      {view.error && <Notice tone="warning">History: {view.error}</Notice>}
      {!zoomed && <Short view={view} />}
      <Charts device={subject} view={view} onZoom={zoom} />
    </>
  );
}

/** Says so where there is much less on record than the span that is shown. */
function Short({ view: { from, to, oldest } }: { view: View }) {
  if (oldest === null || to - oldest > (to - from) * 0.9) return null;
  return (
    <Notice>
      Of these {spanText(to - from)} no more than the last {spanText(to - oldest)} are on record: the service
      has watched this device since {moment(oldest * 1000)}.
    </Notice>
  );
}

interface ChartsProps {
  device: string;
  view: View;
  onZoom: (from: number, to: number) => void;
}

function Charts(props: ChartsProps) {
  if (ring(props.device).names.length === 0)
    return <Empty title="No figures yet">They come within a second or two of the attach.</Empty>;
  return (
    <div class="charts">
      {PLANS.map((plan) => (
        <Planned key={plan.title} plan={plan} {...props} />
      ))}
    </div>
  );
}

/** A chart of those lines that the device has. Its columns are put together only when they are others than before. */
function Planned({ plan, device, view, onZoom }: ChartsProps & { plan: Plan }) {
  const of = plan.of === "service" ? SERVICE : device;
  const lines = plan.lines.filter(({ metric }) => ring(of).has(metric));
  const names = lines.map(({ metric }) => metric).join();
  const { columns } = view;
  const data = useMemo(() => columns(of, names.split(",")), [columns, of, names]);
  if (lines.length === 0) return null;
  return (
    <Chart
      title={plan.title}
      unit={plan.unit}
      lines={lines}
      data={data}
      from={view.from}
      to={view.to}
      logarithmic={plan.logarithmic}
      atLeast={plan.atLeast}
      note={modelled(plan) ? "modelled" : undefined}
      onZoom={onZoom}
    />
  );
}

/** Whether all that a chart shows is worked out by the model of a card rather than measured. */
function modelled(plan: Plan): boolean {
  const sources = plan.lines.map(
    ({ metric }) =>
      metrics.value.find(({ of, name }) => of === (plan.of ?? "device") && name === metric)?.source,
  );
  return (
    sources.some((source) => source === "modelled") &&
    sources.every((source) => source === "modelled" || source === undefined)
  );
}
