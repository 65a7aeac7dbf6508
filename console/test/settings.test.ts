import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { POLICIES, settingOf } from "../src/pages/configure/settings";

it("the groomer's policies are those that the layer has", () => {
  const source = readFileSync(new URL("../../crates/ftl/src/policy/mod.rs", import.meta.url), "utf8");
  const names = [...source.matchAll(/Policy::\w+ => "([a-z-]+)"/g)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(3);
  expect([...POLICIES].sort()).toEqual(names.sort());
});

it("every setting of the service has words and a control of its own", () => {
  const source = readFileSync(new URL("../../crates/daemon/src/settings.rs", import.meta.url), "utf8");
  const table = source.slice(source.indexOf("MEANINGS"), source.indexOf("];"));
  const names = [...table.matchAll(/\(\s*"([a-z-]+)",/g)].map(([, name]) => name ?? "");
  expect(names).toContain("durability");
  for (const name of names) expect(settingOf(name, "on").what, name).not.toBe("");
});
