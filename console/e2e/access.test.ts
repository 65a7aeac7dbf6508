import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { inTree, setUp } from "./browser";
import { DIALOGS, prepare, withDialog } from "./dialogs";

const { service, open } = setUp();
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES = ["overview", "caches", "alerts", "lab", "log", "hosts", "settings"];
const DEVICE_PAGES = ["live", "snapshots", "lifetime", "info", "format", "configure", "drills"];

declare global {
  interface Window {
    axe: { run: (options: object) => Promise<AxeResults> };
  }
}

/** No rule of accessibility is broken, and nothing is wider than the window. */
async function passes(page: Page, name: string): Promise<void> {
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

const VARIANTS = [
  [1440, "light"],
  [1440, "dark"],
  [390, "light"],
  [390, "dark"],
] as const;

it("breaks no rule of accessibility on any page, and fits", async () => {
  const vsl = await service();
  vsl.device("work");
  await vsl.cachedVolume("slow");
  const page = await open(vsl);
  await page.evaluate(AXE);
  for (const name of [...PAGES, ...DEVICE_PAGES.map((name) => `${name}/work`)]) {
    await page.evaluate((name) => {
      window.location.hash = `#/${name}`;
    }, name);
    // Until what it asks for is there.
    await page.waitForTimeout(1500);
    for (const [width, colorScheme] of VARIANTS) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      // Charts are drawn anew for another width, and colours fade into each other.
      await page.waitForTimeout(400);
      await passes(page, `${name}, ${width} wide, ${colorScheme}`);
    }
  }
});

it("breaks none in a report of the lab, nor in runs side by side", async () => {
  const vsl = await service();
  const run = resolve("../crates/lab/tests/data/run");
  const directory = mkdtempSync(join(tmpdir(), "report-"));
  const pages = ["report", "compare"].map((name) => join(directory, `${name}.html`));
  vsl.vsl("lab", "report", run, "--out", pages[0] ?? "");
  vsl.vsl("lab", "compare", run, run, "--out", pages[1] ?? "");
  const browser = (await open(vsl)).context().browser();
  // A report allows no scripts but its own; what looks for mistakes is one.
  const context = await browser?.newContext({ bypassCSP: true });
  const page = await context?.newPage();
  if (page === undefined) throw new Error("no page");
  for (const file of pages) {
    await page.goto(`file://${file}`);
    await page.evaluate(AXE);
    for (const [width, colorScheme] of VARIANTS) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await page.waitForTimeout(400);
      await passes(page, `${file}, ${width} wide, ${colorScheme}`);
    }
  }
  await context?.close();
  rmSync(directory, { recursive: true });
});

it.each(VARIANTS)("breaks none in any dialog: %i wide, %s", async (width, colorScheme) => {
  const vsl = await service();
  const page = await open(vsl);
  await prepare(vsl, page);
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme });
  await page.evaluate(AXE);
  for (const shown of DIALOGS) {
    await withDialog(page, shown, async () => {
      await passes(page, shown.name);
      const inside = page.getByRole("dialog");
      expect(await inside.evaluate((dialog) => dialog.scrollWidth - dialog.clientWidth), shown.name).toBe(0);
    });
  }
});

it("asks and answers by the keyboard alone, and gives the focus back", async () => {
  const vsl = await service();
  const page = await open(vsl);
  const button = page.getByRole("button", { name: "Create a device" });
  const focused = () => page.evaluate(() => document.activeElement?.textContent);
  for (const end of ["Escape", "Enter"]) {
    await button.focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Create a device" });
    await dialog.waitFor();
    await page.keyboard.type(vsl.file("typed.vsl"));
    // In the order in which it is read: the kind, the capacity.
    for (const label of ["A device", "Capacity"]) {
      await page.keyboard.press("Tab");
      expect(
        await dialog.getByLabel(label, { exact: true }).evaluate((one) => one === document.activeElement),
      ).toBe(true);
    }
    await page.keyboard.type("64MiB");
    await page.keyboard.press(end);
    await dialog.waitFor({ state: "detached" });
    expect(await focused()).toBe("Create a device");
  }
  await inTree(page, "typed").waitFor();
});

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
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Live · work" }).waitFor();
});
