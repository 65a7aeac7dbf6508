import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { deed } from "../src/text/deed";

const did = (method: string, path: string, body: unknown = {}) =>
  deed({ method, path: `/api/v1${path}`, what: JSON.stringify(body) });

describe("the audit log", () => {
  it("says what somebody did", () => {
    expect(did("POST", "/devices", { path: "/a,/b,/c,/d", name: "flash" })).toBe(
      "attached device flash on 4 files",
    );
    expect(did("POST", "/create", { paths: ["/a"], label: "flash" })).toBe("created device flash on /a");
    expect(did("PATCH", "/devices/db/config", { groomer: "greedy" })).toBe("set groomer to greedy of db");
    expect(did("DELETE", "/devices/a%20b/drills/rot")).toBe("undid the fault rot on a b");
    expect(did("POST", "/hosts/far/devices/db/detach", { force: true })).toBe(
      "detached db, by force (on far)",
    );
    expect(did("PUT", "/devices/db/snapshot-schedule", { hourly: 24, daily: 0, weekly: 4 })).toBe(
      "had 24 hourly, 4 weekly snapshots of db kept",
    );
    expect(did("PUT", "/devices/db/snapshot-schedule")).toBe("ended the schedule of snapshots of db");
    expect(did("PUT", "/devices/db/keys")).toBe("changed the keys of db");
  });
  it("shows what it has no words for, and what was cut", () => {
    expect(did("POST", "/nobody/knows")).toBe("POST /nobody/knows");
    expect(deed({ method: "POST", path: "/api/v1/devices", what: '{"name": "fla' })).toBe(
      "attached a device",
    );
  });
  it("has words for every request that changes something", () => {
    const routes = new URL("../../crates/daemon/src/web/routes/", import.meta.url);
    let found = 0;
    for (const file of readdirSync(routes).filter((name) => name.endsWith(".rs"))) {
      const source = readFileSync(new URL(file, routes), "utf8");
      for (const [, method, path] of source.matchAll(
        /path\(\s*(post|put|patch|delete),\s*path = "([^"]+)"/g,
      )) {
        found += 1;
        const request = (path ?? "").replaceAll(/\{\w+\}/g, "x");
        expect(did((method ?? "").toUpperCase(), request), `${method} ${path}`).not.toMatch(/^[A-Z]+ \//);
      }
    }
    expect(found).toBeGreaterThanOrEqual(40);
  });
});
