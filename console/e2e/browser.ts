import { type Browser, type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { Service } from "./service";

/** The distribution's browser. */
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Milliseconds that something on a page may take before it counts as not coming. */
export const PATIENCE = 30_000;

/** A browser for the tests of a file, and a page and a service for each of them. What a page complains of fails its test. */
export function setUp() {
  let browser: Browser;
  const contexts: BrowserContext[] = [];
  const services: Service[] = [];
  const complaints: string[] = [];

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--headless=new"] });
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    for (const context of contexts.splice(0)) await context.close();
    for (const service of services.splice(0)) await service.end();
    expect(complaints.splice(0)).toEqual([]);
  });

  return {
    async service(): Promise<Service> {
      const service = await Service.start();
      services.push(service);
      return service;
    },
    /** The console of a service, signed in by its address as `vsl console` prints it. */
    async open(service: Service): Promise<Page> {
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
      contexts.push(context);
      const page = await context.newPage();
      page.setDefaultTimeout(PATIENCE);
      page.on("pageerror", (error) => complaints.push(error.message));
      page.on("console", (message) => {
        if (/Content Security Policy/.test(message.text())) complaints.push(message.text());
      });
      page.on("request", (request) => {
        if (!request.url().startsWith(service.address)) complaints.push(`a request to ${request.url()}`);
      });
      await page.goto(service.console());
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
      return page;
    },
  };
}

/** Goes to a page by the menu, as its users do. */
export async function go(page: Page, name: string): Promise<void> {
  await page.getByRole("navigation").getByRole("link", { name, exact: false }).first().click();
  await page.getByRole("heading", { level: 1, name: new RegExp(`^${name}`) }).waitFor();
}

/** A device in the overview's tree. One that needs attention is linked to a second time. */
export function inTree(page: Page, name: string): Locator {
  return page.getByLabel("Tree of devices").getByRole("link", { name, exact: true });
}

/** Chooses the device that the device pages are of. */
export async function chooseDevice(page: Page, name: string): Promise<void> {
  await page.getByLabel("Device that these pages are of").selectOption(name);
}

/** Looks again and again until something holds. */
export async function eventually<T>(look: () => Promise<T>, holds: (found: T) => boolean): Promise<T> {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = await look();
    if (holds(found)) return found;
    if (Date.now() > end) throw new Error(`it did not come: ${JSON.stringify(found)}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Waits until a device is in a state: it is shown from the beginning of an attach or a format on, and not only at its end. */
export async function inState(service: Service, name: string, state: string): Promise<void> {
  await eventually(
    async () => service.vsl("status", name, "--field", "state"),
    (found) => found === state,
  );
}
