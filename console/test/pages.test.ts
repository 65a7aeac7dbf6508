import { describe, expect, it, vi } from "vitest";
import type { Alert, Device, History, Metric, Rule } from "../src/api/types";
import { body, detailOf, KINDS, nameOf } from "../src/pages/drills/kinds";
import { bounds, capacityAt, presentShare } from "../src/pages/format/capacity";
import { marks, place } from "../src/pages/snapshots/marks";
import { adapters, concerns, filesOf, tone } from "../src/state/attention";
import { sentence } from "../src/text/rule";
import { matches } from "../src/text/search";

vi.stubGlobal("window", { location: { hash: "" }, addEventListener: () => undefined });

const device = (part: Partial<Device>): Device => ({
  name: "a",
  path: "/d/a.vsl",
  state: "attached",
  health: "healthy",
  ...part,
});
const alert = (part: Partial<Alert>): Alert => ({
  id: 1,
  rule: "temperature",
  device: "a",
  severity: "warning",
  what: "too warm",
  raised_ms: 0,
  value: 0,
  threshold: 0,
  ...part,
});

describe("routes", async () => {
  const { href, parse } = await import("../src/route");
  it("name a page and a subject", () => {
    expect(parse("#/live/fct0")).toEqual({ page: "live", subject: "fct0" });
    expect(parse("#/alerts")).toEqual({ page: "alerts", subject: null });
    expect(parse(href("info", "a b/c"))).toEqual({ page: "info", subject: "a b/c" });
  });
  it("are the overview where they make no sense", () => {
    for (const hash of ["", "#", "#/", "#/nowhere/x", "#token=abc"]) {
      expect(parse(hash)).toEqual({ page: "overview", subject: null });
    }
    expect(parse("#/live/%ff")).toEqual({ page: "live", subject: "%ff" });
  });
});

describe("search", () => {
  const entry = { who: "ada", peer: "127.0.0.1:9", path: "/devices/db/detach", status: 204, what: "{}" };
  it("looks at every value, in any case and order", () => {
    for (const words of ["", " ", "ada", "DETACH ada", "127.0.0.1", "204"])
      expect(matches(words, Object.values(entry))).toBe(true);
    for (const words of ["bob", "ada bob", "path"]) expect(matches(words, Object.values(entry))).toBe(false);
  });
});

describe("where a device lies", () => {
  it("is a path, or how many files where", () => {
    expect(filesOf(device({}))).toBe("/d/a.vsl");
    expect(filesOf(device({ path: "/a/0.vsl,/a/1.vsl" }))).toBe("2 files in /a");
    expect(filesOf(device({ path: "/a/0.vsl,/b/1.vsl,/c/2.vsl" }))).toBe("3 files in /a and /b and others");
  });
});

describe("a rule", () => {
  const rule = (part: Partial<Rule>): Rule => ({
    name: "r",
    meaning: "",
    metric: "celsius",
    device: null,
    comparison: "above",
    threshold: 75,
    clear: 72,
    for_s: 5,
    severity: "warning",
    enabled: true,
    built_in: true,
    ...part,
  });
  const metric = (name: string, label: string, unit: string) =>
    ({ name, label, unit, of: "device" }) as Metric;
  const known = [
    metric("celsius", "Temperature", "celsius"),
    metric("write_reduced", "Writes reduced", "flag"),
    metric("lost_dies", "Lost dies", "count"),
  ];
  it("reads as a sentence", () => {
    expect(sentence(rule({}), known)).toBe("Temperature is at or above 75 °C for 5 s, until it is at 72 °C");
    const flag = { metric: "write_reduced", threshold: 1, clear: 0, for_s: 0 };
    expect(sentence(rule(flag), known)).toBe("Writes reduced");
    expect(sentence(rule({ ...flag, metric: "lost_dies" }), known)).toBe("Any lost dies");
    expect(sentence(rule({ comparison: "below", threshold: 10, clear: 12 }), known)).toBe(
      "Temperature is at or below 10 °C for 5 s, until it is at 12 °C",
    );
  });
});

describe("attention", () => {
  it("judges a device by state and health", () => {
    expect(tone(device({}))).toBe("ok");
    expect(tone(device({ health: "degraded: die 1 is lost" }))).toBe("critical");
    expect(tone(device({ health: "write-reduced" }))).toBe("warning");
    expect(tone(device({ state: "powered-off" }))).toBe("critical");
    expect(tone(device({ state: "attaching" }))).toBe("off");
    expect(tone(device({ state: "error" }))).toBe("critical");
    expect(tone(device({ health: "writes fail: the store is full" }))).toBe("critical");
    expect(tone(device({ state: "attached-read-only" }))).toBe("off");
    const noRoom = device({ state: "attached-read-only", health: "read-only: no space left" });
    expect(tone(noRoom)).toBe("critical");
    expect(concerns([noRoom], []).map(({ what }) => what)).toEqual(["read-only: no space left"]);
  });
  it("lists the worst first, and nothing twice", () => {
    const found = concerns(
      [
        device({ name: "a", health: "write-reduced" }),
        device({ name: "b", health: "writes fail: full" }),
        device({ name: "c" }),
      ],
      [alert({ id: 1, device: "a" }), alert({ id: 2, device: "a", acknowledged_ms: 5 })],
    );
    expect(found.map(({ device, tone }) => [device, tone])).toEqual([
      ["b", "critical"],
      ["a", "warning"],
    ]);
  });
  it("puts modules of one card together", () => {
    const found = adapters([
      device({ name: "fct0", path: "/run/fct0.vsl", profile: "duo" }),
      device({ name: "plain", path: "/srv/plain.vsl" }),
      device({ name: "fct1", path: "/run/fct1.vsl", profile: "duo" }),
      device({ name: "other", path: "/srv/other0.vsl", profile: "duo" }),
    ]);
    expect(found.map(({ kind, modules }) => [kind, modules.map(({ name }) => name)])).toEqual([
      ["Adapter", ["fct0", "fct1"]],
      ["Files", ["plain"]],
      ["Adapter", ["other"]],
    ]);
  });
});

describe("capacities", () => {
  const duo = device({ bytes: 224e9, advertised_bytes: 320e9, raw_bytes: 409.6e9 });
  it("have names at their places", () => {
    expect([100, 80, 70, 50, 83].map(capacityAt)).toEqual([
      "advertised",
      "high-performance",
      "improved-write",
      "maximum-write",
      "83%",
    ]);
    expect(presentShare(duo)).toBe(70);
    expect(presentShare(device({}))).toBeNull();
  });
  it("stay below what the media hold", () => {
    const { most } = bounds(duo);
    expect((320e9 * most) / 100).toBeLessThan(409.6e9);
    expect(most).toBeGreaterThan(100);
  });
});

describe("drills", () => {
  const kind = (name: string) => {
    const found = KINDS.find((one) => one.name === name);
    if (!found) throw new Error(name);
    return found;
  };
  it("are asked for as the API takes them", () => {
    expect(body(kind("power-cut"), {})).toEqual({ drill: "power-cut", unsynced: "random" });
    expect(body(kind("power-cut"), { at_write: "1000", unsynced: "torn", seed: "" })).toEqual({
      drill: "power-cut",
      at_write: 1000,
      unsynced: "torn",
    });
    expect(body(kind("rot"), { lba: "7" })).toEqual({ drill: "rot", lba: 7, count: 1 });
    expect(body(kind("fill-reserve"), { read_only: true })).toEqual({
      drill: "fill-reserve",
      read_only: true,
    });
  });
  it("that are on have a name and details", () => {
    const on = { drill: "stall-die", die: 0, ms: 200, seed: null };
    expect([nameOf(on), detailOf(on)]).toEqual(["stall-die", "die 0, ms 200"]);
    expect([nameOf("kill-die 1"), detailOf("kill-die 1")]).toEqual(["kill-die 1", ""]);
  });
});

describe("history", async () => {
  const { columnsOf } = await import("../src/pages/live/columns");
  const history: History = {
    device: "a",
    uuid: "u",
    resolution_s: 60,
    from: 0,
    to: 600,
    at: [0, 60, 300],
    values: { a: [1, null, 3] },
  };
  it("is parted where spans are missing", () => {
    expect(columnsOf(history, ["a", "b"])).toEqual({
      at: [0, 60, 180, 300],
      values: [
        [1, null, null, 3],
        [null, null, null, null],
      ],
    });
  });
});

describe("snapshots on their time line", () => {
  const day = 86_400;
  it("stand from the oldest to now, the newer with more room", () => {
    const reach = 28 * day;
    const at = [reach, 7 * day, day, 3600, 0].map((age) => place(age, reach));
    expect(at[0]).toBe(0);
    expect(at[4]).toBe(1);
    expect(at).toEqual([...at].sort((a, b) => a - b));
    expect((at[3] ?? 0) - (at[2] ?? 0)).toBeGreaterThan(0.3);
    // Of a time to come, as after a clock was set back; and where all were made just now.
    expect([place(-5, reach), place(0, 0)]).toEqual([1, 1]);
  });
  it("have marks whose words do not meet", () => {
    const words = (reach: number) => marks(reach).map(({ words }) => words);
    expect(words(60)).toEqual(["now"]);
    expect(words(day)).toEqual(["now", "1 h ago", "6 h ago"]);
    expect(words(28 * day)).toEqual(["now", "6 h ago", "1 d ago", "7 d ago"]);
    for (const reach of [10, 600, 7200, day, 9 * day, 400 * day, 4000 * day]) {
      const at = marks(reach).map((mark) => mark.at);
      at.slice(1).forEach((one, position) => {
        expect((at[position] ?? 0) - one).toBeGreaterThan(0.17);
      });
    }
  });
});
