// How each setting of `vsl config` is asked for. One that is not listed here is a line of text under its own name.

export type Control =
  | { kind: "switch" }
  | { kind: "choice"; of: readonly string[] }
  | { kind: "text"; hint?: string };

export interface Setting {
  title: string;
  what: string;
  control: Control;
}

/** The groomer's policies, the default one first. */
export const POLICIES = [
  "lifetime",
  "greedy",
  "greedy-one-stream",
  "cost-benefit",
  "fifo",
  "d-choices",
  "dac",
  "sepbit",
  "midas",
  "placement",
  "placement-initial",
  "zones",
];

const SWITCH: Control = { kind: "switch" };

const SETTINGS: Record<string, Setting> = {
  label: { title: "Label", what: "a name for people", control: { kind: "text" } },
  trim: { title: "TRIM", what: "whether trims are carried out", control: SWITCH },
  beacon: { title: "Beacon", what: "all lights lit, to find it among others", control: SWITCH },
  drills: {
    title: "Drill device",
    what: "faults may be put on it by command; holds with the next attach",
    control: SWITCH,
  },
  durability: {
    title: "Durability",
    what: "when writes survive a power cut: once flushed (write-back), once answered (write-through), or some time later (unsafe)",
    control: { kind: "choice", of: ["write-back", "write-through", "unsafe", "remote"] },
  },
  "nvme-block": {
    title: "NVMe block",
    what: "bytes of a block over NVMe, none of which is ever torn; holds with the next attach",
    control: { kind: "text", hint: "a size from the sector's to 64KiB" },
  },
  "queue-depth": {
    title: "Queue depth",
    what: "requests that all clients may have with the device at once",
    control: { kind: "text", hint: "1 to 255, or none" },
  },
  "power-override": {
    title: "Power override",
    what: "the card's slot may give any power: writes are not held back for it",
    control: SWITCH,
  },
  "page-file": {
    title: "Page-file support",
    what: "memory for the worst case is taken and locked at once, so that a swap file may lie on the device",
    control: SWITCH,
  },
  groomer: {
    title: "Groomer",
    what: "which block is groomed next",
    control: { kind: "choice", of: POLICIES },
  },
  "checkpoint-interval": {
    title: "Checkpoint interval",
    what: "written between two checkpoints; bounds what an attach after a crash must read",
    control: { kind: "text", hint: "a size, such as 512MiB" },
  },
  "object-prices": {
    title: "Prices of the object store",
    what: "the groomer collects by them",
    control: { kind: "text", hint: "s3-standard, none, or put=0.005,get=0.0004,month=0.023,egress=0" },
  },
  "attach-at-start": {
    title: "Attach at start",
    what: "the service attaches it when it starts",
    control: SWITCH,
  },
};

export function settingOf(name: string, value: string): Setting {
  const known = SETTINGS[name];
  if (known) return known;
  const title = name.charAt(0).toUpperCase() + name.slice(1).replaceAll("-", " ");
  return { title, what: "", control: value === "on" || value === "off" ? SWITCH : { kind: "text" } };
}
