import type { Line } from "../../parts/Chart";
import plans from "./plans.json";

/** What a chart of the live page shows. Only lines whose metric the device has are drawn, and only charts with a line. */
export interface Plan {
  title: string;
  unit: string;
  lines: readonly Line[];
  logarithmic?: boolean;
  atLeast?: number;
  of?: "service";
}

// Made from the service's table of figures, which says what each line is called and where it is drawn.
export const PLANS = plans as readonly Plan[];

/** A span that can be chosen. Up to `LIVE_SECONDS` it comes from the page's own memory, beyond from history. */
export interface Span {
  label: string;
  spoken: string;
  seconds: number;
}

export const LIVE_SECONDS = 900;

export const SPANS: readonly Span[] = [
  { label: "1 m", spoken: "the last minute", seconds: 60 },
  { label: "5 m", spoken: "the last 5 minutes", seconds: 300 },
  { label: "15 m", spoken: "the last 15 minutes", seconds: 900 },
  { label: "1 h", spoken: "the last hour", seconds: 3600 },
  { label: "6 h", spoken: "the last 6 hours", seconds: 21_600 },
  { label: "24 h", spoken: "the last day", seconds: 86_400 },
  { label: "7 d", spoken: "the last 7 days", seconds: 604_800 },
  { label: "30 d", spoken: "the last 30 days", seconds: 2_592_000 },
  { label: "1 y", spoken: "the last year", seconds: 31_536_000 },
];
