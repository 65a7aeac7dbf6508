import { signal } from "@preact/signals";
import { get, seg } from "../api/client";
import type { History, Metric, Sample, Values } from "../api/types";
import { Ring } from "./ring";

/** Seconds that are kept of each device in the page. What is older comes from the service's history. */
export const KEPT_SECONDS = 3600;
/** Seconds that are fetched of a device's history when it is looked at first. */
const PREFILL_SECONDS = 900;

export const SERVICE = "service";

const rings = new Map<string, Ring>();
const prefilled = new Set<string>();

/** Counts the samples: whoever reads it is drawn anew with each. */
export const tick = signal(0);
/** The newest sample. */
export const latest = signal<Sample | null>(null);
export const metrics = signal<Metric[]>([]);

export function ring(name: string): Ring {
  let found = rings.get(name);
  if (found === undefined) {
    found = new Ring(KEPT_SECONDS);
    rings.set(name, found);
  }
  return found;
}

export function take(sample: Sample): void {
  const at = sample.at_ms / 1000;
  ring(SERVICE).push(at, sample.service);
  for (const [name, device] of Object.entries(sample.devices)) ring(name).push(at, device.values);
  latest.value = sample;
  // Nobody sees a page in the background: it is drawn when it is looked at again.
  if (document.visibilityState === "visible") tick.value += 1;
}

/** Forgets devices that are gone. */
export function keepOnly(names: ReadonlySet<string>): void {
  for (const name of rings.keys()) {
    if (name !== SERVICE && !names.has(name)) {
      rings.delete(name);
      prefilled.delete(name);
    }
  }
}

/** Forgets everything: another host is looked at. */
export function forget(): void {
  rings.clear();
  prefilled.clear();
  latest.value = null;
}

/** What a device's newest sample says. */
export function now(name: string): Values | null {
  const sample = latest.value;
  return (name === SERVICE ? sample?.service : sample?.devices[name]?.values) ?? null;
}

export function value(name: string, metric: string): number | null {
  const found = now(name)?.[metric];
  return found === null || found === undefined ? null : Number(found);
}

export function historyPath(name: string): string {
  return name === SERVICE ? "/service/history" : `/devices/${seg(name)}/history`;
}

/** Puts the minutes before the page was opened in front of what it has seen itself. */
export async function prefill(name: string): Promise<void> {
  if (prefilled.has(name)) return;
  prefilled.add(name);
  let history: History;
  try {
    history = await get<History>(`${historyPath(name)}?from=-${PREFILL_SECONDS}&resolution=1s`);
  } catch {
    // Without history the charts begin where the page was opened.
    prefilled.delete(name);
    return;
  }
  const seen = rings.get(name);
  const whole = new Ring(KEPT_SECONDS);
  const names = Object.keys(history.values);
  const first = seen?.oldest ?? Number.POSITIVE_INFINITY;
  for (const [row, at] of history.at.entries()) {
    // A point of history stands for its whole second, a sample for the moment at its end.
    if (at >= first - 0.5) break;
    whole.push(
      at,
      Object.fromEntries(names.map((metric) => [metric, history.values[metric]?.[row] ?? null])),
    );
  }
  if (seen !== undefined) {
    const columns = seen.names;
    const rows = seen.slice(columns, 0, Number.POSITIVE_INFINITY);
    for (const [row, at] of rows.at.entries()) {
      whole.push(
        at,
        Object.fromEntries(columns.map((metric, column) => [metric, rows.values[column]?.[row] ?? null])),
      );
    }
  }
  rings.set(name, whole);
  tick.value += 1;
}
