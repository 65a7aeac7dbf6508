import { expect, it } from "vitest";
import { chooseDevice, eventually, go, inTree, setUp } from "./browser";
import { fio } from "./service";

const { service, open } = setUp();

it("shows a living device to whoever opens it for the first time", async () => {
  const vsl = await service();
  const page = await open(vsl);
  expect(page.url()).not.toContain("token");
  await page.getByText("No device is attached yet").waitFor();
  await page.getByRole("button", { name: "Start the demo" }).last().click();
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "demo", exact: true }) });
  await row.waitFor();
  await eventually(
    () => row.getByRole("img", { name: /Lights/ }).getAttribute("aria-label"),
    (lights) => lights?.includes("write activity") === true && lights.includes("read activity"),
  );
  await go(page, "Live");
  const reads = page.getByRole("figure", { name: "IOPS" }).getByRole("button", { name: /^read/ });
  await eventually(
    async () => Number((await reads.locator("b").textContent())?.replace(/[^\d.]/g, "")),
    (iops) => iops > 0,
  );
  await go(page, "Overview");
  await page.getByRole("button", { name: "Stop the demo" }).click();
  await page.getByText("No device is attached yet").waitFor();
});

it("asks a stranger to sign in", async () => {
  const vsl = await service();
  const page = await open(vsl);
  await go(page, "Settings");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token or access key").fill("wrong");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("alert").waitFor();
  const token = decodeURIComponent(new URL(vsl.console()).hash.replace("#token=", ""));
  await page.getByLabel("Token or access key").fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("navigation").first().waitFor();
});

it("shows what fio measures", async () => {
  const vsl = await service();
  const uri = vsl.device("work");
  const page = await open(vsl);
  await chooseDevice(page, "work");
  await go(page, "Live");
  await page.getByRole("button", { name: "the last minute", exact: false }).click();
  const running = fio(
    uri,
    "--rw=randwrite",
    "--bs=4k",
    "--iodepth=8",
    "--rate_iops=1500",
    "--time_based",
    // Far longer than is looked at: on a machine that does much else the page is late.
    "--runtime=30",
    "--size=64m",
  );
  // From the middle of the run, second by second, as somebody sees it who looks at the page.
  const button = page.getByRole("figure", { name: "IOPS" }).getByRole("button", { name: /^write/ });
  const seen: number[] = [];
  await eventually(
    async () => Number((await button.locator("b").textContent())?.replace(/[^\d]/g, "")),
    (iops) => iops > 500,
  );
  await page.waitForTimeout(2000);
  for (let second = 0; second < 8; second += 1) {
    seen.push(Number((await button.locator("b").textContent())?.replace(/[^\d]/g, "")));
    await page.waitForTimeout(1000);
  }
  const measured = await running;
  const mean = seen.reduce((sum, value) => sum + value, 0) / seen.length;
  expect(
    Math.abs(mean - measured.iops) / measured.iops,
    `${seen} seen, ${measured.iops} measured`,
  ).toBeLessThan(0.05);
});

it("says when the service is gone, and finds it again", async () => {
  const vsl = await service();
  vsl.device("work");
  const page = await open(vsl);
  await inTree(page, "work").waitFor();
  await vsl.kill();
  await page.getByText("The service does not answer").waitFor();
  await inTree(page, "work").waitFor();
  await vsl.up();
  await page.getByText("The service does not answer").waitFor({ state: "detached" });
  await inTree(page, "work").waitFor();
});
