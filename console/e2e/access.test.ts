import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import { expect, it } from "vitest";
import { setUp } from "./browser";

const { service, open } = setUp();
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES = ["overview", "alerts", "lab", "log", "hosts", "settings"];
const DEVICE_PAGES = ["live", "lifetime", "info", "format", "configure", "drills"];

declare global {
  interface Window {
    axe: { run: (options: object) => Promise<AxeResults> };
  }
}

it.each([
  [1440, "light"],
  [1440, "dark"],
  [390, "light"],
  [390, "dark"],
] as const)(
  "breaks no rule of accessibility on any page, and fits: %i wide, %s",
  async (width, colorScheme) => {
    const vsl = await service();
    vsl.device("work");
    const page = await open(vsl);
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await page.evaluate(AXE);
    for (const name of [...PAGES, ...DEVICE_PAGES.map((name) => `${name}/work`)]) {
      await page.evaluate((name) => {
        window.location.hash = `#/${name}`;
      }, name);
      await page.waitForTimeout(1500);
      const broken = await page.evaluate(async () => {
        const { violations } = await window.axe.run({ resultTypes: ["violations"] });
        return violations.map(
          ({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120)).join("; ")}`,
        );
      });
      expect(broken, name).toEqual([]);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      expect(wider, `${name} is wider than the window`).toBeLessThanOrEqual(0);
    }
  },
);

it("is used with the keyboard alone", async () => {
  const vsl = await service();
  vsl.device("work");
  const page = await open(vsl);
  const tree = page.getByRole("treegrid");
  await tree.getByRole("link", { name: "work", exact: true }).waitFor();
  await tree.getByRole("row").nth(1).focus();
  await page.keyboard.press("ArrowLeft");
  expect(await tree.getByRole("link", { name: "work", exact: true }).count()).toBe(0);
  await page.keyboard.press("ArrowRight");
  for (let press = 0; press < 2; press += 1) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Live · work" }).waitFor();
});
