import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { eventually, setUp } from "./browser";

const { service, open } = setUp();

/** What a hostile host gives for a page: it makes an administrator of whoever wrote it, if it may. */
const HOSTILE = `<!doctype html><title>A report</title><h1>A report</h1>
<form action="/api/v1/accounts" method="post"><button>Next</button></form>
<script>
  document.title = "it ran";
  fetch("/api/v1/accounts", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ name: "mallory", role: "administrator", password: "correct horse battery" }),
  });
</script>`;

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A host that gives this page for every path, as this type. */
function hostile(type: string): Promise<string> {
  return new Promise((resolve) => {
    const server = createServer((_, answer) => {
      answer.writeHead(200, {
        "Content-Type": type,
        "Content-Security-Policy": "default-src * 'unsafe-inline'",
      });
      answer.end(HOSTILE);
    });
    servers.push(server);
    server.listen(0, "127.0.0.1", () => {
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    });
  });
}

it("shows what another host wrote, and lets it do nothing", async () => {
  const vsl = await service();
  writeFileSync(vsl.file("key"), "k".repeat(64));
  const kinds = { page: "text/html", picture: "image/svg+xml", script: "text/javascript" };
  for (const [name, type] of Object.entries(kinds)) {
    vsl.vsl("hosts", "add", name, await hostile(type), "--key-file", vsl.file("key"));
  }
  const page = await open(vsl);
  const tab = await page.context().newPage();
  const at = (path: string) => tab.goto(`${vsl.address}/api/v1/hosts/${path}`);

  const report = await at("page/lab/runs/first/report");
  expect(report?.status()).toBe(200);
  expect(report?.headers()["content-security-policy"]).toMatch(/^sandbox;/);
  expect(await tab.getByRole("heading", { name: "A report" }).count()).toBe(1);
  await tab.getByRole("button", { name: "Next" }).click();
  await tab.waitForTimeout(500);
  expect(await tab.title()).toBe("A report");
  expect(await tab.evaluate(() => window.origin)).toBe("null");
  // Beside reports there are no pages, and nowhere anything else that a browser would run.
  for (const path of ["page/devices", "picture/devices", "script/devices", "picture/lab/runs/first/report"]) {
    expect((await at(path))?.status(), path).toBe(502);
  }
  expect(vsl.vsl("account", "list")).not.toContain("mallory");
});

it("keeps reports of this host away from its API", async () => {
  const vsl = await service();
  vsl.vsl(
    "lab",
    "run",
    "snia-pts-latency",
    "--device",
    "iodrive-320-mlc",
    "--out",
    vsl.file("state/lab/own"),
  );
  const page = await open(vsl);
  const tab = await page.context().newPage();
  const refused: string[] = [];
  tab.on("console", (message) => {
    if (/Content Security Policy|sandbox/i.test(message.text())) refused.push(message.text());
  });
  await tab.goto(`${vsl.address}/api/v1/lab/runs/own/report`);
  // Its own scripts run: charts are drawn to be zoomed.
  await eventually(
    async () => tab.locator("canvas, svg").count(),
    (count) => count > 2,
  );
  expect(refused).toEqual([]);
  const answer = await tab.evaluate(async () => {
    try {
      return (await fetch("/api/v1/accounts")).status;
    } catch {
      return "refused";
    }
  });
  expect([await tab.evaluate(() => window.origin), answer]).toEqual(["null", "refused"]);
});
