import type { Line } from "../../parts/Chart";

/** What a chart of the live page shows. Only lines whose metric the device has are drawn, and only charts with a line. */
export interface Plan {
  title: string;
  unit: string;
  lines: readonly Line[];
  logarithmic?: boolean;
  atLeast?: number;
  of?: "service";
}

const line = (metric: string, label: string, tone: number, limit = false): Line => ({
  metric,
  label,
  tone,
  limit,
});

const plan = (title: string, unit: string, lines: readonly Line[], more: Partial<Plan> = {}): Plan => ({
  title,
  unit,
  lines,
  ...more,
});

const latency = (kind: string, title: string): Plan =>
  plan(
    title,
    "us",
    [
      line(`${kind}_p50_us`, "p50", 0),
      line(`${kind}_p99_us`, "p99", 1),
      line(`${kind}_p999_us`, "p99.9", 2),
      line(`${kind}_max_us`, "most", 6),
    ],
    { logarithmic: true },
  );

export const PLANS: readonly Plan[] = [
  plan("Bandwidth", "bytes/s", [
    line("read_bytes_per_s", "read", 0),
    line("write_bytes_per_s", "write", 1),
    line("trim_bytes_per_s", "trim", 3),
  ]),
  plan("IOPS", "1/s", [
    line("read_iops", "read", 0),
    line("write_iops", "write", 1),
    line("flush_iops", "flush", 2),
    line("trim_iops", "trim", 3),
  ]),
  latency("read", "Read latency"),
  latency("write", "Write latency"),
  plan("Queue depth", "count", [
    line("queue_depth", "mean", 0),
    line("queue_depth_max", "most", 1),
    line("clients", "clients", 6),
  ]),
  plan("Write amplification", "ratio", [line("write_amplification", "media over host", 1)], { atLeast: 2 }),
  plan("Groomer and media", "bytes/s", [
    line("groomed_bytes_per_s", "moved by the groomer", 3),
    line("media_written_bytes_per_s", "written to media", 0),
  ]),
  plan(
    "Free blocks and reserve",
    "%",
    [line("free_percent", "free blocks", 2), line("reserve_percent", "reserve", 4)],
    { atLeast: 100 },
  ),
  plan("Temperature", "celsius", [line("celsius", "inside", 1)], { atLeast: 80 }),
  plan("Power", "watts", [line("watts", "used", 0), line("power_limit_watts", "slot budget", 6, true)]),
  plan("Processor", "%", [line("cpu_percent", "the layer's thread", 0)], { atLeast: 10 }),
  plan("Memory", "bytes", [line("memory_bytes", "the layer", 0), line("map_memory_bytes", "forward map", 1)]),
  plan("Store", "bytes", [
    line("store_free_bytes", "free on the file system", 2),
    line("allocated_bytes", "taken by the device", 0),
  ]),
  plan("Data held", "bytes", [line("mapped_bytes", "mapped", 2)]),
  plan("The service's processor", "%", [line("cpu_percent", "whole service", 7)], {
    atLeast: 10,
    of: "service",
  }),
  plan("The service's memory", "bytes", [line("memory_bytes", "whole service", 7)], { of: "service" }),
];

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
