import { seg } from "../api/client";
import type { History } from "../api/types";
import { useResource } from "../state/resource";
import { short } from "../text/quantity";

const WIDTH = 96;
const HEIGHT = 16;
/** Seconds that it shows, and that it stays as it is. */
const SHOWN = 900;
const EVERY = 15;
const LINES = [
  { metric: "read_iops", says: "reads", colour: "var(--c0)" },
  { metric: "write_iops", says: "writes", colour: "var(--c4)" },
] as const;

/** The greatest of each step of a time, by the step's number. */
function steps(
  at: readonly number[],
  values: readonly (number | null)[],
  from: number,
  step: number,
): Map<number, number> {
  const found = new Map<number, number>();
  for (const [row, time] of at.entries()) {
    const value = values[row];
    if (value === null || value === undefined || time < from) continue;
    const number = Math.floor((time - from) / step);
    found.set(number, Math.max(value, found.get(number) ?? 0));
  }
  return found;
}

/** What a device was asked in the last quarter of an hour, as two lines in a row's height. */
export function Trend({ device }: { device: string }) {
  const metrics = LINES.map(({ metric }) => metric).join();
  const path = `/devices/${seg(device)}/history?from=-${SHOWN}&resolution=1s&metrics=${metrics}`;
  const { value } = useResource<History>(path, EVERY * 1000);
  if (value === null) return null;
  const lines = LINES.map((line) => ({
    ...line,
    found: steps(value.at, value.values[line.metric] ?? [], value.to - SHOWN, EVERY),
  }));
  const most = Math.max(0, ...lines.flatMap(({ found }) => [...found.values()]));
  const says = lines.map(({ says, found }) => `${says} up to ${short(Math.max(0, ...found.values()))}/s`);
  const label = `Last 15 minutes: ${says.join(", ")}`;
  const x = (step: number) => (step / (SHOWN / EVERY)) * WIDTH;
  const y = (value: number) => HEIGHT - 1 - (most > 0 ? value / most : 0) * (HEIGHT - 2);
  return (
    <svg class="trend" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <title>{label}</title>
      {lines.map(({ metric, colour, found }) => (
        <path
          key={metric}
          d={[...found]
            .map(([step, value]) => `${found.has(step - 1) ? "L" : "M"}${x(step)} ${y(value)}h1`)
            .join("")}
          stroke={colour}
        />
      ))}
    </svg>
  );
}
