// Numbers as people read them. One place, so that the same figure looks the same on every page.

const DECIMAL = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
/** What stands where there is no figure. */
export const NONE = "–";

/** A figure as the API answers it: nothing where there is none. */
type Maybe = number | null | undefined;

function isKnown(value: Maybe): value is number {
  return value !== null && value !== undefined && Number.isFinite(value);
}

function digits(value: number, places: number): string {
  return value.toLocaleString("en", { minimumFractionDigits: 0, maximumFractionDigits: places });
}

/** Three significant digits, with thousands separated. */
export function number(value: Maybe): string {
  if (!isKnown(value)) return NONE;
  const size = Math.abs(value);
  return digits(value, size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2);
}

/** A whole number, with thousands separated. */
export function count(value: Maybe): string {
  return isKnown(value) ? digits(value, 0) : NONE;
}

/** A number in thousands, for axes and narrow columns: 12.4k. */
export function short(value: Maybe): string {
  if (!isKnown(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 1e9) return `${number(value / 1e9)}G`;
  if (size >= 1e6) return `${number(value / 1e6)}M`;
  if (size >= 1e4) return `${number(value / 1e3)}k`;
  return number(value);
}

export function bytes(value: Maybe): string {
  if (!isKnown(value)) return NONE;
  let unit = 0;
  let scaled = value;
  while (Math.abs(scaled) >= 999.5 && unit < DECIMAL.length - 1) {
    scaled /= 1000;
    unit += 1;
  }
  return `${number(scaled)} ${DECIMAL[unit]}`;
}

export function percent(value: Maybe, places = 1): string {
  return isKnown(value) ? `${digits(value, places)} %` : NONE;
}

/** A span given in microseconds. */
export function micros(value: Maybe): string {
  if (!isKnown(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 999_500) return `${number(value / 1e6)} s`;
  if (size >= 999.5) return `${number(value / 1e3)} ms`;
  return `${number(value)} µs`;
}

/** A span given in seconds, in its largest unit or two. */
export function span(seconds: Maybe): string {
  if (!isKnown(seconds)) return NONE;
  const size = Math.max(0, Math.round(seconds));
  const parts: [number, string][] = [
    [31_557_600, "y"],
    [86_400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const first = parts.findIndex(([length]) => size >= length);
  if (first === -1) return "0 s";
  const [length, name] = parts[first] ?? [1, "s"];
  const whole = Math.floor(size / length);
  const [next, below] = parts[first + 1] ?? [1, ""];
  const rest = Math.floor((size - whole * length) / next);
  return rest === 0 || below === "" || whole >= 10
    ? `${count(whole)} ${name}`
    : `${whole} ${name} ${rest} ${below}`;
}

/** A value in a unit of the API's. */
export function quantity(unit: string, value: Maybe | boolean): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (!isKnown(value)) return NONE;
  switch (unit) {
    case "bytes":
      return bytes(value);
    case "bytes/s":
      return `${bytes(value)}/s`;
    case "us":
      return micros(value);
    case "%":
      return percent(value);
    case "celsius":
      return `${number(value)} °C`;
    case "watts":
      return `${number(value)} W`;
    case "ns/byte":
      return `${number(value)} ns/B`;
    case "s":
      return span(value);
    case "hours":
      return span(value * 3600);
    case "flag":
      return value ? "yes" : "no";
    case "ratio":
      return value.toFixed(2);
    default:
      return short(value);
  }
}
