import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");

/** What the reports call a colour that has another name here. */
const NAMES: Record<string, string> = { bg: "ground", fg: "text" };

it("colours are those of the reports", () => {
  const style = read("../src/style/tokens.css");
  const [light = "", dark = ""] = style.split('[data-theme="dark"]');
  const token = (of: string, name: string) => new RegExp(`--${name}: (#[0-9a-f]{6})`).exec(of)?.[1];
  const colours = read("../../crates/chart/src/theme.rs").matchAll(/\("(\w+)", "(#\w{6})", "(#\w{6})"\)/g);
  let compared = 0;
  for (const [, name = "", inLight, inDark] of colours) {
    const here = NAMES[name] ?? name;
    if (token(light, here) === undefined) continue;
    expect([token(light, here), token(dark, here)], name).toEqual([inLight, inDark]);
    compared += 1;
  }
  expect(compared).toBe(14);
});
