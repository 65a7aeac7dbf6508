import { computed, effect, type Signal, signal } from "@preact/signals";
import { address, Failure, failure, get, host, noAnswer } from "../api/client";
import type { Alert, Alerts, Device, Event, Field, Health, Job, Sample, Version } from "../api/types";
import { connect, lost, phase } from "./link";
import { recall, remember } from "./remembered";
import { draw, forget, keepOnly, metrics, take } from "./telemetry";

// What there is at the host that is looked at, kept current by its stream.

export const devices = signal<Device[]>([]);
export const alerts = signal<Alert[]>([]);
export const jobs = signal<Job[]>([]);
export const events = signal<Event[]>([]);
export const fields = signal<Field[]>([]);
export const health = signal<Health | null>(null);
export const version = signal<Version | null>(null);
/** Whether the devices were asked for at least once since the connection was made. */
export const loaded = signal(false);

const EVENTS_KEPT = 2000;
const JOBS_KEPT = 100;
/** Milliseconds between two looks at every device's fields: what changes by the second comes by the stream. */
const REFRESH = 5000;
/** Milliseconds without a sample after which the stream counts as dead. */
const SILENCE = 6000;

export const device = (name: string | null) => devices.value.find((device) => device.name === name) ?? null;

const chosen = signal<string | null>(recall("device"));
/** The device that device pages open with. */
export const preferred = computed(() => {
  const names = devices.value.map((device) => device.name);
  return chosen.value !== null && names.includes(chosen.value) ? chosen.value : (names[0] ?? null);
});
export function choose(name: string): void {
  chosen.value = name;
  remember("device", name);
}

/** Whatever else went wrong, the service is there. */
function lostBy(error: unknown): void {
  const why = failure(error);
  if (why.kind === "offline" || why.kind === "unreachable") lost(why);
}

let refreshing: Promise<void> | null = null;
/** Asks for devices and alerts anew. */
export function refresh(): Promise<void> {
  refreshing ??= (async () => {
    try {
      const [list, active, state] = await Promise.all([
        get<Device[]>("/devices"),
        get<Alerts>("/alerts"),
        get<Health>("/health"),
      ]);
      devices.value = list;
      keepOnly(new Set(list.map((device) => device.name)));
      alerts.value = active.alerts;
      health.value = state;
      loaded.value = true;
      // Their ends come by the stream; after a gap in it they are looked for.
      if (jobs.value.some((job) => job.state === "running")) jobs.value = await get<Job[]>("/jobs");
    } catch (error) {
      lostBy(error);
    } finally {
      refreshing = null;
    }
  })();
  return refreshing;
}

/** Asks for what changes rarely. Each for itself: an older service elsewhere may not know all of it. */
async function load(): Promise<void> {
  const into = async <T>(target: Signal<T>, path: string) => {
    try {
      target.value = await get<T>(path);
    } catch (error) {
      lostBy(error);
    }
  };
  await Promise.all([
    into(metrics, "/telemetry/metrics"),
    into(fields, "/fields"),
    into(version, "/version"),
    into(jobs, "/jobs"),
    refresh(),
  ]);
}

function noteAlert(alert: Alert): void {
  const known = alerts.value.some(({ id }) => id === alert.id);
  if (alert.cleared_ms) alerts.value = alerts.value.filter(({ id }) => id !== alert.id);
  else if (known) alerts.value = alerts.value.map((other) => (other.id === alert.id ? alert : other));
  else alerts.value = [alert, ...alerts.value];
}

export function noteJob(job: Job): void {
  const found = jobs.value.some((other) => other.id === job.id);
  jobs.value = found
    ? jobs.value.map((other) => (other.id === job.id ? job : other))
    : [job, ...jobs.value].slice(0, JOBS_KEPT);
}

function noteSample(sample: Sample): void {
  take(sample);
  const differs = (known: Device) => {
    const seen = sample.devices[known.name];
    return seen !== undefined && (seen.state !== known.state || seen.health !== known.health);
  };
  const known = new Set(devices.value.map((device) => device.name));
  if (devices.value.some(differs) || Object.keys(sample.devices).some((name) => !known.has(name)))
    void refresh();
}

let source: EventSource | null = null;
let heard = 0;

function listen(): void {
  source?.close();
  heard = Date.now();
  const stream = new EventSource(address("/stream"), { withCredentials: true });
  source = stream;
  const on = <T>(name: string, then: (value: T) => void) =>
    stream.addEventListener(name, (message) => {
      heard = Date.now();
      then(JSON.parse((message as MessageEvent<string>).data) as T);
    });
  on<Sample>("sample", noteSample);
  on<Alert>("alert", noteAlert);
  on<Job>("job", noteJob);
  on<Event>("event", (event) => {
    events.value = [event, ...events.value].slice(0, EVENTS_KEPT);
    void refresh();
  });
  stream.onerror = () => {
    if (source !== stream) return;
    hush();
    lost(noAnswer());
  };
}

function hush(): void {
  source?.close();
  source = null;
}

setInterval(() => {
  if (phase.value !== "online") return;
  if (source !== null && Date.now() - heard > SILENCE && document.visibilityState === "visible") {
    hush();
    lost(new Failure("no figures have come for some seconds", "the service is being asked again", "offline"));
    return;
  }
  void refresh();
}, REFRESH);

// A page that was asleep in the background has heard nothing, and that says nothing about the service.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState !== "visible") return;
  heard = Date.now();
  draw();
});

effect(() => {
  const now = phase.value;
  if (now === "online") {
    void load();
    listen();
  } else {
    hush();
    if (now === "signed-out") loaded.value = false;
  }
});

/** Looks at another host, or with null at this one. */
export function lookAt(name: string | null): void {
  if (host.value === name) return;
  hush();
  host.value = name;
  forget();
  devices.value = [];
  alerts.value = [];
  jobs.value = [];
  events.value = [];
  loaded.value = false;
  phase.value = "starting";
  void connect();
}

export function start(): void {
  void connect();
}
