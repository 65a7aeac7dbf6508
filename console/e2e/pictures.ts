// Takes a picture of every page, wide and narrow, light and dark, for somebody to look at; and those that the documentation shows.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { it } from "vitest";
import { setUp } from "./browser";
import { DIALOGS, prepare, withDialog } from "./dialogs";
import { fio } from "./service";

const { service, open } = setUp();

/** Where all of them go. */
const OUT = process.env.PICTURES ?? "pictures";
const DOCS = "../docs/pictures";
/** Seconds of load before the first is taken. */
const LOAD = 60;

const PAGES = [
  "format/fct0",
  "overview",
  "live/fct0",
  "snapshots/db",
  "lifetime/fct0",
  "info/fct0",
  "configure/db",
  "drills/db",
  "caches",
  "alerts",
  "lab",
  "log",
  "hosts",
  "settings",
];
const WIDTHS = [1440, 390];
const SCHEMES = ["light", "dark"] as const;

/** Those of the documentation: what is taken, and what it is called there. */
const SHOWN: Record<string, string> = {
  "overview 1440 light": "console-overview",
  "live/fct0 1440 dark": "console-live",
  "format/fct0 1440 light": "console-format",
  "overview 390 light": "console-narrow",
};

/** Bytes that a picture of the documentation may have. */
const LIMIT = 60_000;

/** The browser's own picture is large; it is told to write it anew as WebP, as well as there is room for. */
async function compressed(page: Page, png: Buffer): Promise<Buffer> {
  for (const quality of [0.85, 0.75, 0.65, 0.5, 0.35]) {
    const address = await page.evaluate(webp, [png.toString("base64"), quality] as const);
    const bytes = Buffer.from(address.slice(address.indexOf(",") + 1), "base64");
    if (bytes.length <= LIMIT) return bytes;
  }
  throw new Error(`the picture does not fit into ${LIMIT} bytes`);
}

/** Runs in the browser. */
async function webp([png, quality]: readonly [string, number]): Promise<string> {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  canvas.getContext("2d")?.drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", quality);
}

it("takes the pictures", async () => {
  mkdirSync(OUT, { recursive: true });
  const vsl = await service();
  const card = vsl.device("fct0", "--emulate", "iodrive-320-mlc", "--scale", "64");
  const db = vsl.device("db", "--drills");
  await vsl.cachedVolume("slow");
  vsl.vsl("snapshot", "schedule", "db", "--hourly", "24", "--daily", "7");
  vsl.vsl("alerts", "rule", "busy", "--metric", "write_iops", "--above", "100", "--for", "3");
  const load = ["--bs=4k", "--iodepth=4", "--time_based", "--runtime=1200", "--size=32m"];
  const running = [
    fio(card, "--rw=randrw", "--rwmixread=70", "--rate_iops=700,300", ...load),
    fio(db, "--rw=randwrite", "--rate_iops=150", ...load),
  ];
  for (const one of running) one.catch(() => undefined);
  const page = await open(vsl);
  await page.goto(`${vsl.address}/#/format/fct0`);
  await page.getByLabel("Workload").selectOption("random-8k-70-30");
  await page.getByRole("button", { name: "Predict", exact: true }).click();
  await page.getByRole("region", { name: "Prediction" }).getByRole("table").waitFor({ timeout: 240_000 });
  await page.waitForTimeout(LOAD * 1000);

  // A picture is put together in a page of nothing: the console allows no images but its own.
  const blank = await page.context().newPage();
  for (const name of PAGES) {
    await page.evaluate((name) => {
      window.location.hash = `#/${name}`;
    }, name);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      for (const colorScheme of SCHEMES) {
        await page.emulateMedia({ colorScheme });
        await page.waitForTimeout(1500);
        const png = await page.screenshot();
        writeFileSync(join(OUT, `${name.replace("/", "-")}-${width}-${colorScheme}.png`), png);
        const shown = SHOWN[`${name} ${width} ${colorScheme}`];
        if (shown) writeFileSync(join(DOCS, `${shown}.webp`), await compressed(blank, png));
      }
    }
  }
});

it("takes pictures of the dialogs", async () => {
  mkdirSync(OUT, { recursive: true });
  const vsl = await service();
  const page = await open(vsl);
  await prepare(vsl, page);
  for (const width of WIDTHS) {
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme });
      for (const shown of DIALOGS) {
        await page.setViewportSize({ width, height: 900 });
        await withDialog(page, shown, async () => {
          const box = await page.getByRole("dialog").boundingBox();
          if (box && box.height > 860) await page.setViewportSize({ width, height: 1300 });
          await page.waitForTimeout(300);
          await page.screenshot({ path: join(OUT, `dialog-${shown.name}-${width}-${colorScheme}.png`) });
        });
      }
    }
  }
});
