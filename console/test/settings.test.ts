import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { POLICIES } from "../src/pages/configure/settings";

it("the groomer's policies are those that the layer has", () => {
  const source = readFileSync(new URL("../../crates/ftl/src/policy/mod.rs", import.meta.url), "utf8");
  const names = [...source.matchAll(/Policy::\w+ => "([a-z-]+)"/g)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(3);
  expect([...POLICIES].sort()).toEqual(names.sort());
});
