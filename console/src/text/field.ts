import type { FieldValue } from "../api/types";
import { moment } from "./moment";
import { bytes, count, percent, quantity } from "./quantity";

// A field of a device as the pages show it: what `vsl status -a` prints, with the same units.

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** A size in powers of 1024, as sector sizes and settings are named. */
export function binary(value: number): string {
  let unit = 0;
  let scaled = value;
  while (scaled >= 1024 && unit < BINARY.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${Number.isInteger(scaled) ? scaled : scaled.toFixed(2)} ${BINARY[unit]}`;
}

export function show(unit: string, value: FieldValue | undefined): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") {
    switch (unit) {
      case "bytes":
        return value < 1000 ? `${value} B` : `${bytes(value)} (${binary(value)})`;
      case "%":
        return percent(value);
      case "ratio":
        return value.toLocaleString("en", { maximumFractionDigits: 2 });
      case "celsius":
      case "watts":
      case "us":
      case "ns/byte":
        return quantity(unit, value);
      case "time":
        return moment(value * 1000);
      default:
        return count(value);
    }
  }
  if (Array.isArray(value) && value.length === 0) return "none";
  return plain(value);
}

/** A value bare, as scripts read it. */
export function plain(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(plain).join(", ");
  if (typeof value === "object") {
    if ("peer" in value) return plain(value.peer);
    return Object.entries(value)
      .map(([name, inner]) => `${name}=${plain(inner)}`)
      .join(", ");
  }
  return String(value);
}
