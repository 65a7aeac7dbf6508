import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { failure, get } from "../../api/client";
import type { History } from "../../api/types";
import type { Columns } from "../../state/ring";
import { historyPath, prefill, ring, SERVICE, tick } from "../../state/telemetry";
import { LIVE_SECONDS } from "./charts";
import { columnsOf, GAP } from "./columns";

export interface Range {
  from: number;
  to: number;
}

/** What the charts show now, and where it comes from. */
export interface View extends Range {
  columns: (of: string, metrics: readonly string[]) => Columns;
  /** Seconds that a point stands for. */
  resolution: number;
  /** When the oldest row in the span is of, seconds since 1970; nothing before it is known. */
  oldest: number | null;
  error: string | null;
}

/** Points that are asked of history at most: more than a chart has pixels. */
const POINTS = 3600;
const NOTHING: Columns = { at: [], values: [] };

/**
 * The rows of a device in a span that ends now, or in a range that was zoomed into. The page's own memory serves what it reaches back to; the rest is
 * asked of the service's history, anew every few seconds while the span goes on.
 */
export function useView(device: string, seconds: number, zoomed: Range | null, paused: boolean): View {
  // Drawn anew with each sample.
  tick.value;
  const frozen = useRef<Range | null>(null);
  const own = ring(device);
  const service = ring(SERVICE);
  const now = own.newest ?? service.newest ?? Date.now() / 1000;
  if (!paused) frozen.current = null;
  else frozen.current ??= { from: now - seconds, to: now };
  const range = zoomed ?? frozen.current ?? { from: now - seconds, to: now };

  useEffect(() => {
    void prefill(device);
    void prefill(SERVICE);
  }, [device]);

  const { oldest } = own;
  const inMemory = zoomed === null ? seconds <= LIVE_SECONDS : oldest !== null && oldest <= range.from;
  const history = useHistory(device, inMemory ? null : (zoomed ?? frozen.current), inMemory ? 0 : seconds);

  // The same columns as before, unless a row has come into the range: charts are drawn anew only with new ones.
  const seen = Math.min(now, range.to);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the two rings and `seen` stand for the rows.
  const ofRings = useCallback(
    (of: string, metrics: readonly string[]) => ring(of).slice(metrics, range.from - 2, range.to + 1, GAP),
    [own, service, range.from, range.to, seen],
  );
  const ofHistory = useCallback(
    (of: string, metrics: readonly string[]) => {
      const found = of === SERVICE ? history.service : history.device;
      return found === null ? NOTHING : columnsOf(found, metrics);
    },
    [history],
  );

  const held = history.device;
  // Between two askings of history the axis stands still, so that points do not jump.
  const shown =
    inMemory || zoomed || frozen.current || held === null ? range : { from: held.to - seconds, to: held.to };
  return {
    ...shown,
    columns: inMemory ? ofRings : ofHistory,
    resolution: inMemory ? 1 : (held?.resolution_s ?? 1),
    oldest: inMemory ? null : oldestOf(held),
    error: inMemory ? null : history.error,
  };
}

/** A row stands for the span that begins at it. */
function oldestOf(held: History | null): number | null {
  return held === null ? null : (columnsOf(held, []).at[0] ?? null);
}

interface Fetched {
  device: History | null;
  service: History | null;
  error: string | null;
}

const NONE: Fetched = { device: null, service: null, error: null };

function useHistory(device: string, range: Range | null, seconds: number): Fetched {
  const [found, setFound] = useState<Fetched>(NONE);
  const from = range?.from;
  const to = range?.to;
  useEffect(() => {
    if (seconds === 0) return;
    const abort = new AbortController();
    const ask = async () => {
      const span =
        from !== undefined && to !== undefined
          ? `from=${Math.floor(from)}&to=${Math.ceil(to)}`
          : `from=-${seconds}`;
      const query = (name: string) =>
        get<History>(`${historyPath(name)}?${span}&points=${POINTS}`, { signal: abort.signal });
      try {
        const [own, service] = await Promise.all([query(device), query(SERVICE)]);
        setFound({ device: own, service, error: null });
      } catch (error) {
        if (!abort.signal.aborted) setFound((last) => ({ ...last, error: failure(error).message }));
      }
    };
    void ask();
    const every = Math.min(60, Math.max(5, seconds / 360)) * 1000;
    const timer = from === undefined ? setInterval(() => void ask(), every) : undefined;
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [device, from, to, seconds]);
  return seconds === 0 ? NONE : found;
}
