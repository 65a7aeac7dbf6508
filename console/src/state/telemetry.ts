import { batch, signal } from "@preact/signals";
import { get, seg } from "../api/client";
import type { History, Metric, Sample, Values } from "../api/types";
import { Ring } from "./ring";

/** Seconds that are kept of each device in the page. What is older comes from the service's history. */
const KEPT_SECONDS = 3600;
/** Seconds that are fetched of a device's history when it is looked at first. */
const PREFILL_SECONDS = 900;

export const SERVICE = "service";

const rings = new Map<string, Ring>();
const prefilled = new Set<string>();

/** Counts what has come into the rings: whoever reads it is drawn anew with each. */
export const tick = signal(0);
/** The newest sample that is shown. */
export const latest = signal<Sample | null>(null);
let newest: Sample | null = null;
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
  newest = sample;
  // Nobody sees a page in the background: it is drawn when it is looked at again.
  if (document.visibilityState === "visible") draw();
}

/** Draws what has come. */
export function draw(): void {
  batch(() => {
    latest.value = newest;
    tick.value += 1;
  });
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
  newest = null;
  latest.value = null;
}

/** What the newest sample says of a device. Whoever asks is drawn anew with each sample. */
export function value(name: string, metric: string): number | null {
  const sample = latest.value;
  const values: Values | undefined = name === SERVICE ? sample?.service : sample?.devices[name]?.values;
  const found = values?.[metric];
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
  // A point of history stands for its whole second, a sample for the moment at its end.
  whole.append(history.at, history.values, (seen?.oldest ?? Number.POSITIVE_INFINITY) - 0.5);
  if (seen !== undefined) {
    const { names } = seen;
    const { at, values } = seen.slice(names, 0, Number.POSITIVE_INFINITY);
    whole.append(at, Object.fromEntries(names.map((metric, column) => [metric, values[column] ?? []])));
  }
  rings.set(name, whole);
  tick.value += 1;
}
