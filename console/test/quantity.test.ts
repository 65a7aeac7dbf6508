import { describe, expect, it } from "vitest";
import { binary, plain, show } from "../src/text/field";
import { ago, clock, day, moment, zone } from "../src/text/moment";
import { bytes, micros, number, quantity, short, span } from "../src/text/quantity";

describe("quantities", () => {
  it("shows three digits or so", () => {
    expect([number(0), number(2.345678), number(31.4159), number(314.159), number(31_415.9)]).toEqual([
      "0",
      "2.35",
      "31.4",
      "314",
      "31,416",
    ]);
    expect([short(9999), short(12_345), short(1.5e6), short(2e9)]).toEqual(["9,999", "12.3k", "1.5M", "2G"]);
  });

  it("counts bytes in thousands, as the command does", () => {
    expect([bytes(0), bytes(999), bytes(999.6e3), bytes(8.59e9), bytes(4e15)]).toEqual([
      "0 B",
      "999 B",
      "1 MB",
      "8.59 GB",
      "4 PB",
    ]);
    expect([binary(4096), binary(512), binary(8 * 2 ** 30), binary(1.5 * 2 ** 20)]).toEqual([
      "4 KiB",
      "512 B",
      "8 GiB",
      "1.50 MiB",
    ]);
  });

  it("chooses the unit of a time", () => {
    expect([micros(0.5), micros(85), micros(999.4), micros(1500), micros(2e6)]).toEqual([
      "0.5 µs",
      "85 µs",
      "999 µs",
      "1.5 ms",
      "2 s",
    ]);
    expect([span(0), span(59), span(60), span(3700), span(86_400 * 3), span(86_400 * 3100)]).toEqual([
      "0 s",
      "59 s",
      "1 min",
      "1 h 1 min",
      "3 d",
      "8 y 178 d",
    ]);
  });

  it("shows what is not known as such", () => {
    for (const unit of [
      "bytes",
      "bytes/s",
      "us",
      "%",
      "celsius",
      "watts",
      "ratio",
      "count",
      "flag",
      "1/s",
      "s",
      "ns/byte",
      "hours",
    ]) {
      expect(quantity(unit, null)).toBe("–");
      expect(quantity(unit, undefined)).toBe("–");
    }
    expect(quantity("ratio", Number.NaN)).toBe("–");
  });

  it("knows every unit of the API's", () => {
    expect(quantity("bytes/s", 64e6)).toBe("64 MB/s");
    expect(quantity("celsius", 55.93)).toBe("55.9 °C");
    expect(quantity("watts", 24.75)).toBe("24.8 W");
    expect(quantity("ratio", 1.8)).toBe("1.80");
    expect(quantity("s", 90)).toBe("1 min 30 s");
    expect(quantity("hours", 26)).toBe(span(26 * 3600));
    expect(quantity("%", 0.41)).toBe("0.4 %");
    expect(quantity("1/s", 20_345)).toBe("20.3k");
    expect(quantity("flag", true)).toBe("yes");
  });
});

describe("fields", () => {
  it("are shown by their units", () => {
    expect(show("bytes", 8_589_934_592)).toBe("8.59 GB (8 GiB)");
    expect([show("celsius", 32.5), show("watts", 5), show("us", 12.34)]).toEqual([
      "32.5 °C",
      "5 W",
      "12.3 µs",
    ]);
    expect(show("flag", false)).toBe("no");
    expect(show("list", [])).toBe("none");
    expect(show("list", [{ peer: "process 7", requests: 1 }])).toBe("process 7");
    expect(show("list", { trim: "on", beacon: "off" })).toBe("trim=on, beacon=off");
    expect(plain(["a", 1, null])).toBe("a, 1, ");
  });
});

describe("moments", () => {
  const now = new Date(2026, 10, 21, 12, 0, 0).getTime();
  it("have their day where it is not today", () => {
    expect(moment(now - 1000)).toBe(`2026-11-21 11:59:59 ${zone(now)}`);
    expect(zone(now)).toMatch(/^UTC([+-]\d+(:\d\d)?)?$/);
    expect([day(now), clock(now), moment(null)]).toEqual(["2026-11-21", "12:00:00", "–"]);
  });
  it("are so long ago", () => {
    expect([ago(now, now), ago(now - 30_000, now), ago(now - 600_000, now), ago(now - 7.2e6, now)]).toEqual([
      "just now",
      "30 s ago",
      "10 min ago",
      "2 h ago",
    ]);
  });
});
