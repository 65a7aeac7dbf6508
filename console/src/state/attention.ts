import type { Alert, Device } from "../api/types";
import { severityTone, type Tone } from "../parts/State";

/** Something that somebody should look at. */
export interface Concern {
  key: string;
  tone: Tone;
  what: string;
  device: string | null;
  alert: Alert | null;
}

/** Whether its health says how a device does. One that is attached to be read only by command is simply that. */
function tellsByHealth({ state, health }: Device): boolean {
  return state === "attached" || (state === "attached-read-only" && health !== "healthy");
}

/** How a device does, in a word or in its health's. */
export function standing(device: Device): string {
  return tellsByHealth(device) ? device.health : device.state;
}

/** How a device does, in one tone. */
export function tone(device: Device): Tone {
  if (device.state === "error") return "critical";
  if (!tellsByHealth(device)) return device.state === "powered-off" ? "critical" : "off";
  if (device.health === "healthy") return "ok";
  return /fail|read-only|lost|unreadable|damaged/.test(device.health) ? "critical" : "warning";
}

const RANK: Record<Tone, number> = { critical: 0, warning: 1, off: 2, ok: 3 };

/** The files that a device lacks, in front of what an alert says of it. */
function missing({ rule, device }: Alert, devices: readonly Device[]): string {
  const of = rule === "degraded" ? devices.find(({ name }) => name === device) : undefined;
  const names = (of?.lost_dies ?? []).map((die) => of?.paths?.[die]?.replace(/^.*\//, "") ?? `die ${die}`);
  return names.length > 0 ? `${names.join(", ")}: ` : "";
}

/** What needs attention, the worst first. What an alert says already is not said twice. */
export function concerns(devices: readonly Device[], alerts: readonly Alert[]): Concern[] {
  const found: Concern[] = alerts
    .filter((alert) => !alert.acknowledged_ms)
    .map((alert) => ({
      key: `alert ${alert.id}`,
      tone: severityTone(alert.severity),
      what: `${missing(alert, devices)}${alert.what}`,
      device: alert.device ?? null,
      alert,
    }));
  const alerted = new Set(alerts.map((alert) => alert.device));
  for (const device of devices) {
    const own = tone(device);
    if (own === "ok" || alerted.has(device.name)) continue;
    const what = tellsByHealth(device) ? device.health : `${device.state}: ${device.health}`;
    found.push({ key: `device ${device.name}`, tone: own, what, device: device.name, alert: null });
  }
  return found.sort((a, b) => RANK[a.tone] - RANK[b.tone]);
}

/** Where a device lies, in a few words: a path, or how many files in which directory. */
export function filesOf({ path }: Pick<Device, "path">): string {
  const paths = path.split(",");
  const directories = new Set(paths.map((one) => one.replace(/\/[^/]*$/, "")));
  if (paths.length === 1) return path;
  return `${paths.length} files in ${[...directories].slice(0, 2).join(" and ")}${directories.size > 2 ? " and others" : ""}`;
}

/** Modules of one card are listed under it. */
export interface Adapter {
  key: string;
  /** A card, by its data sheet; otherwise the files that the device lives in. */
  kind: "Adapter" | "Files";
  title: string;
  modules: Device[];
}

/** Devices by the card that they are modules of: of one data sheet, and made together, so that their files differ by a number only. */
export function adapters(devices: readonly Device[]): Adapter[] {
  const found = new Map<string, Adapter>();
  for (const device of devices) {
    const stem = device.path.replace(/\d+(\.[^./]*)?$/, "");
    const key = device.profile ? `${device.profile} ${stem}` : `file ${device.name}`;
    let adapter = found.get(key);
    if (adapter === undefined) {
      adapter = device.profile
        ? { key, kind: "Adapter", title: device.profile, modules: [] }
        : { key, kind: "Files", title: filesOf(device), modules: [] };
      found.set(key, adapter);
    }
    adapter.modules.push(device);
  }
  return [...found.values()];
}
