import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { eventually, go, inTree, setUp } from "./browser";
import { MailSink } from "./mail";
import { fio, Service } from "./service";

const { service, open } = setUp();
const sinks: MailSink[] = [];
afterEach(async () => {
  for (const sink of sinks.splice(0)) await sink.close();
});

it("raises an alert, sends it by mail, and clears it", async () => {
  const vsl = await service();
  const uri = vsl.device("work");
  const sink = await MailSink.listen();
  sinks.push(sink);
  const page = await open(vsl);

  await go(page, "Alerts");
  await page.getByRole("button", { name: "Notifications" }).click();
  await page.getByLabel("By mail").check();
  await page.getByLabel("Server").fill("127.0.0.1");
  await page.getByLabel("Port").fill(String(sink.port));
  await page.getByLabel("Security").selectOption("none");
  await page.getByLabel("From", { exact: true }).fill("vsl@localhost");
  await page.getByLabel("To, with commas").fill("ops@localhost");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Notifications are set").waitFor();

  await page.getByRole("button", { name: "Rules" }).click();
  await page.getByRole("button", { name: "Add a rule" }).click();
  const dialog = page.getByRole("dialog", { name: "A new rule" });
  await dialog.getByLabel("Name").fill("busy");
  await dialog.getByLabel("Figure").selectOption("write_iops");
  await dialog.getByLabel(/^Threshold/).fill("100");
  await dialog.getByLabel(/^Lasting/).fill("0");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });

  await page.getByRole("button", { name: /^Active/ }).click();
  await page.getByText("No alert is active").waitFor();
  const running = fio(
    uri,
    "--rw=randwrite",
    "--bs=4k",
    "--iodepth=4",
    "--rate_iops=500",
    "--time_based",
    "--runtime=6",
    "--size=32m",
  );
  await page.getByRole("region", { name: "Active alerts" }).getByText("busy").waitFor();
  await eventually(
    async () => sink.messages.join("\n"),
    (mail) => mail.includes("work") && mail.includes("busy"),
  );
  await running;
  await page.getByText("No alert is active").waitFor();
  await page.getByRole("button", { name: "History" }).click();
  await page.getByRole("region", { name: "Alerts that were" }).getByText("busy").waitFor();
});

it("runs a protocol to its report", async () => {
  const vsl = await service();
  const page = await open(vsl);
  const asked: number[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/lab/runs")) asked.push(Date.now());
  });
  await go(page, "Lab");
  await eventually(
    async () => asked.length,
    (times) => times >= 2,
  );
  // Not once more because it was opened, only when it is time again.
  expect((asked[1] ?? 0) - (asked[0] ?? 0)).toBeGreaterThan(4000);
  await page.getByLabel("Protocol", { exact: true }).selectOption("snia-pts-latency");
  await page
    .getByRole("form", { name: "Start a protocol" })
    .getByLabel("Device", { exact: true })
    .selectOption("iodrive-320-mlc");
  await page.getByLabel("Name of the run").fill("first");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  const link = page.getByRole("link", { name: "Report of first" });
  await link.waitFor({ timeout: 280_000 });
  const [report] = await Promise.all([page.context().waitForEvent("page"), link.click()]);
  await report.waitForLoadState();
  expect(await report.getByRole("heading").count()).toBeGreaterThan(2);
  expect(await report.title()).not.toBe("");
});

it("compares two runs", async () => {
  const vsl = await service();
  for (const [name, card] of [
    ["small", "iodrive-320-mlc"],
    ["large", "iodrive-640-mlc"],
  ] as const) {
    const out = join(vsl.directory, "state", "lab", name);
    vsl.vsl("lab", "run", "snia-pts-latency", "--device", card, "--scale", "64", "--yes", "--out", out);
    vsl.vsl("lab", "report", out);
  }
  const page = await open(vsl);
  await go(page, "Lab");
  await page.getByLabel("Compare small").check();
  await page.getByLabel("Compare large").check();
  const link = page.getByRole("link", { name: "Compare 2 runs" });
  const [compared] = await Promise.all([page.context().waitForEvent("page"), link.click()]);
  await compared.waitForLoadState();
  const text = await compared.locator("body").textContent();
  expect(text).toContain("small");
  expect(text).toContain("large");
  expect(text).not.toContain(vsl.directory);
});

it("stays signed in while another service of the host is signed in to", async () => {
  const one = await service();
  const other = await service();
  one.device("close");
  other.device("distant");
  const page = await open(one);
  const second = await page.context().newPage();
  await second.goto(other.console());
  await inTree(second, "distant").waitFor();
  await page.reload();
  await inTree(page, "close").waitFor();
});

it("looks after two services under one console", async () => {
  const near = await service();
  const far = await Service.start();
  try {
    far.device("distant");
    near.device("close");
    const page = await open(near);
    await go(page, "Hosts");
    await page.getByRole("button", { name: "Add a host" }).click();
    const dialog = page.getByRole("dialog", { name: "Add a host" });
    await dialog.getByLabel("Name").fill("far");
    await dialog.getByLabel("Address").fill(far.address);
    await dialog
      .getByLabel("Access key")
      .fill(decodeURIComponent(new URL(far.console()).hash.replace("#token=", "")));
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("reachable", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Look at far" }).click();
    await inTree(page, "distant").waitFor();
    expect(await page.getByRole("link", { name: "close", exact: true }).count()).toBe(0);

    await far.kill();
    await page.getByText("Host far does not answer").waitFor();
    await page.getByRole("button", { name: "Back to this host" }).first().click();
    await inTree(page, "close").waitFor();
  } finally {
    await far.end();
  }
});
