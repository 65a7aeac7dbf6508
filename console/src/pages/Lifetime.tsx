import { seg } from "../api/client";
import type { EraseBin, Lifetime } from "../api/types";
import { type Figure, Figures } from "../parts/Figures";
import { Meter } from "../parts/Meter";
import { Asking } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import type { Tone } from "../parts/State";
import { type Column, Table } from "../parts/Table";
import { useResource } from "../state/resource";
import { day } from "../text/moment";
import { bytes, count, NONE, number, percent, quantity, span } from "../text/quantity";

export function LifetimePage({ subject }: { subject: string }) {
  const { value, error } = useResource<Lifetime>(`/devices/${seg(subject)}/lifetime`, 5000);
  if (value === null) return <Asking error={error} what="Lifetime" />;
  return (
    <div class="flow">
      <Written life={value} />
      <Wear life={value} />
      <Erases life={value} />
    </div>
  );
}

function Written({ life }: { life: Lifetime }) {
  const since = life.since ? `since ${day(life.since * 1000)}` : "since the format";
  return (
    <Panel label="Data written" title="Data" aside={<span class="muted small">{since}</span>}>
      <Figures
        of={[
          { label: "Written by hosts", value: bytes(life.host_written_bytes) },
          { label: "Read by hosts", value: bytes(life.host_read_bytes) },
          { label: "Written to media", value: bytes(life.media_written_bytes) },
          { label: "Write amplification", value: quantity("ratio", life.write_amplification) },
          {
            label: "Present rate",
            value:
              life.written_per_day_bytes === null || life.written_per_day_bytes === undefined
                ? "–"
                : `${bytes(life.written_per_day_bytes)}`,
            note: life.rate_over_s ? `a day, over the last ${span(life.rate_over_s)}` : "a day",
          },
        ]}
      />
    </Panel>
  );
}

/** How much of something is left, in one tone: the card's own warning comes at a tenth. */
function left(share: number | null | undefined): Tone {
  if (share === null || share === undefined) return "ok";
  return share <= 0 ? "critical" : share <= 10 ? "warning" : "ok";
}

function Wear({ life }: { life: Lifetime }) {
  const figures: Figure[] = [];
  if (life.reserve_percent !== null && life.reserve_percent !== undefined) {
    const share = life.reserve_percent;
    figures.push({
      label: "Reserve",
      value: percent(share),
      note: <Meter share={share} tone={left(share)} />,
    });
  }
  if (life.active_media_percent !== null && life.active_media_percent !== undefined) {
    const share = life.active_media_percent;
    figures.push({ label: "Active media", value: percent(share), note: <Meter share={share} /> });
  }
  if (life.rated_written_bytes) {
    figures.push({
      label: "Rated writes",
      value: bytes(life.rated_written_bytes),
      note: "by the data sheet",
    });
    const share = life.rated_left_percent;
    figures.push({
      label: "Remaining",
      value: percent(share),
      note: <Meter share={share} tone={left(share)} />,
    });
  }
  return (
    <Panel title="Wear" aside={life.source && <span class="muted small">{life.source}</span>}>
      {figures.length > 0 ? (
        <Figures of={figures} />
      ) : (
        <p class="muted">
          Files and disks have no rated writes and no reserve that the layer could know of. Emulated cards
          have, by their data sheets.
        </p>
      )}
      {figures.length > 0 && <p>{projection(life)}</p>}
    </Panel>
  );
}

/** Seconds after which a rate tells a day. */
const DAY = 86_400;

function projection(life: Lifetime): string {
  const measured = life.rate_over_s ? span(life.rate_over_s) : "";
  if (life.ends) {
    const rest = life.ends - Date.now() / 1000;
    const on = (life.rate_over_s ?? 0) >= DAY ? `, on ${day(life.ends * 1000)}` : "";
    return `At the rate of the last ${measured} it is worn out in about ${span(rest)}${on}.`;
  }
  if (life.written_per_day_bytes)
    return `Its writing was measured over ${measured} only: an end is projected after an hour.`;
  return "Nothing is written at present, so no end can be projected.";
}

function Erases({ life }: { life: Lifetime }) {
  const { erases } = life;
  if (!erases) return null;
  const bins = erases.histogram ?? [];
  return (
    <Panel
      label="Erases"
      title="Erases of blocks"
      aside={erases.source && <span class="muted small">{erases.source}</span>}
    >
      <Figures
        of={[
          { label: "In all", value: count(erases.total) },
          { label: "Least", value: count(erases.min) },
          { label: "Mean", value: number(erases.average) },
          { label: "Most", value: count(erases.max) },
        ].filter(({ value }) => value !== NONE)}
      />
      {bins.length > 0 ? (
        <Histogram bins={bins} />
      ) : (
        <p class="muted">Of each block by itself nothing is counted on this medium.</p>
      )}
    </Panel>
  );
}

const name = ({ from, to }: EraseBin) => (to <= from ? String(from) : `${from} to ${to}`);

const BINS: readonly Column<EraseBin>[] = [
  { title: "Times erased", head: true, cell: name },
  { title: "Blocks", number: true, cell: ({ blocks }) => count(blocks) },
];

/** Blocks by how often they were erased: bars to look at, the same as a table to read. */
function Histogram({ bins }: { bins: readonly EraseBin[] }) {
  const most = Math.max(1, ...bins.map((bin) => bin.blocks));
  const width = 100 / bins.length;
  return (
    <>
      <svg class="histogram" viewBox="0 0 100 44" preserveAspectRatio="none" aria-hidden="true">
        {bins.map((bin, position) => {
          const height = (bin.blocks / most) * 42;
          return (
            <rect
              key={bin.from}
              x={position * width + width * 0.08}
              y={44 - height}
              width={width * 0.84}
              height={height}
              fill="var(--c0)"
            >
              <title>
                {count(bin.blocks)} blocks erased {name(bin)} times
              </title>
            </rect>
          );
        })}
      </svg>
      <div class="histogram-ends muted small" aria-hidden="true">
        <span>{bins[0] && name(bins[0])}</span>
        <span>times erased</span>
        <span>{bins.length > 1 && name(bins[bins.length - 1] as EraseBin)}</span>
      </div>
      <details>
        <summary>
          Figures<span class="spoken"> of the histogram of erases</span>
        </summary>
        <Table rows={bins} keyOf={({ from }) => from} columns={BINS} />
      </details>
    </>
  );
}
