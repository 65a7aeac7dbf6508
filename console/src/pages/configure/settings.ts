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
