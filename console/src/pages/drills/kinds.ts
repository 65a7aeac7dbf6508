// The drills that there are, and what each of them asks for. Bodies are those of `POST /devices/NAME/drills`.

export interface Ask {
  name: string;
  label: string;
  kind: "number" | "choice" | "switch";
  of?: readonly string[];
  /** What it starts with; nothing where it may be left out. */
  value?: string | boolean;
}

export interface Kind {
  name: string;
  title: string;
  what: string;
  asks: readonly Ask[];
  /** Only on emulated cards, only on others, or on both. */
  on: "any" | "emulated" | "files";
}

const sectors: readonly Ask[] = [
  { name: "lba", label: "First sector", kind: "number", value: "0" },
  { name: "count", label: "Sectors", kind: "number", value: "1" },
];

export const KINDS: readonly Kind[] = [
  {
    name: "power-cut",
    title: "Power cut",
    what: "Clients lose their disk in mid-request, and everything in memory is gone.",
    on: "any",
    asks: [
      { name: "at_write", label: "With write number (now)", kind: "number" },
      { name: "at_program", label: "or with program number", kind: "number" },
      {
        name: "unsynced",
        label: "What no sync covers",
        kind: "choice",
        of: ["random", "drop", "keep", "torn"],
        value: "random",
      },
      { name: "seed", label: "Seed (drawn)", kind: "number" },
    ],
  },
  {
    name: "kill-die",
    title: "Kill a die",
    what: "A file of the device answers nothing any more.",
    on: "files",
    asks: [{ name: "die", label: "Die", kind: "number", value: "0" }],
  },
  {
    name: "kill-chip",
    title: "Kill a chip",
    what: "A flash chip of the card answers nothing any more, with all its dies.",
    on: "emulated",
    asks: [{ name: "chip", label: "Chip", kind: "number", value: "0" }],
  },
  {
    name: "stall-die",
    title: "Stall a die",
    what: "It answers everything later.",
    on: "any",
    asks: [
      { name: "die", label: "Die", kind: "number", value: "0" },
      { name: "ms", label: "Later by, ms", kind: "number", value: "200" },
    ],
  },
  {
    name: "rot",
    title: "Rot",
    what: "One bit of each sector flips where it lies on the medium.",
    on: "any",
    asks: sectors,
  },
  {
    name: "fail-reads",
    title: "Fail reads",
    what: "Reads of where the sectors lie now fail.",
    on: "any",
    asks: sectors,
  },
  {
    name: "ignore-flushes",
    title: "Ignore flushes",
    what: "Flushes are answered at once and do nothing: a disk whose cache lies.",
    on: "any",
    asks: [],
  },
  {
    name: "fill-reserve",
    title: "Fill the reserve",
    what: "The card's reserve is used up, and writes are held back.",
    on: "emulated",
    asks: [{ name: "read_only", label: "Worn out: refuse writes", kind: "switch", value: false }],
  },
  {
    name: "overheat",
    title: "Overheat",
    what: "As warm inside as said: writes are held back more and more.",
    on: "emulated",
    asks: [{ name: "celsius", label: "°C (just too warm)", kind: "number" }],
  },
  {
    name: "age",
    title: "Age",
    what: "What stands on it is older than it is, and is read again and again until it is right.",
    on: "emulated",
    asks: [{ name: "days", label: "Days", kind: "number", value: "365" }],
  },
];

export type Answers = Readonly<Record<string, string | boolean>>;

/** The request's body. What was left empty is left out. */
export function body(kind: Kind, answers: Answers): Record<string, unknown> {
  const found: Record<string, unknown> = { drill: kind.name };
  for (const ask of kind.asks) {
    const answer = answers[ask.name] ?? ask.value;
    if (answer === undefined || answer === "") continue;
    found[ask.name] = ask.kind === "number" ? Number(answer) : answer;
  }
  return found;
}

/** The name of a drill that is on, from the service's answer. */
export function nameOf(drill: unknown): string {
  return typeof drill === "object" && drill !== null && "drill" in drill
    ? String(drill.drill)
    : String(drill);
}

/** What a drill that is on was told, in words. */
export function detailOf(drill: unknown): string {
  if (typeof drill !== "object" || drill === null) return "";
  return Object.entries(drill)
    .filter(([name, value]) => name !== "drill" && value !== null)
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`)
    .join(", ");
}
