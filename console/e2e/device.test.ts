import { expect, it } from "vitest";
import { chooseDevice, eventually, go, inState, inTree, setUp } from "./browser";
import { fio } from "./service";

const { service, open } = setUp();

it("attaches and detaches a device", async () => {
  const vsl = await service();
  vsl.vsl("create", vsl.file("mine.vsl"), "--size", "64MiB");
  const page = await open(vsl);
  await page.getByRole("button", { name: "Attach a device" }).click();
  const dialog = page.getByRole("dialog", { name: "Attach a device" });
  await dialog.getByLabel("Device file").fill(vsl.file("nowhere.vsl"));
  await dialog.getByRole("button", { name: "Attach", exact: true }).click();
  await page.getByText("No such file").waitFor();
  // Beside its field, where one types next, and nowhere else.
  const field = dialog.getByLabel("Device file");
  expect(await field.evaluate((one) => one === document.activeElement)).toBe(true);
  expect(await field.getAttribute("aria-invalid")).toBe("true");
  expect(await page.getByText("No such file").count()).toBe(1);
  await dialog.getByLabel("Device file").fill(vsl.file("mine.vsl"));
  await dialog.getByRole("button", { name: "Attach", exact: true }).click();
  await inTree(page, "mine").waitFor();
  await inState(vsl, "mine", "attached");
  await go(page, "Configure");
  await page.getByLabel("TRIM").uncheck();
  await eventually(
    async () => vsl.vsl("config", "mine", "trim"),
    (trim) => trim === "off",
  );
  await page.getByRole("button", { name: "Detach" }).click();
  await go(page, "Overview");
  await page.getByText("No device is attached yet").waitFor();
});

it("asks before it detaches from a client that came a moment ago", async () => {
  const vsl = await service();
  const uri = vsl.device("work");
  const page = await open(vsl);
  await chooseDevice(page, "work");
  await go(page, "Configure");
  // It ends with its device.
  fio(uri, "--rw=randread", "--bs=4k", "--rate_iops=20", "--time_based", "--runtime=1200").catch(
    () => undefined,
  );
  await eventually(
    async () => vsl.vsl("status", "work", "--json"),
    (status) => /"peer"/.test(status),
  );
  await page
    .getByRole("region", { name: "Clients" })
    .getByRole("row", { name: /^process \d+ \(fio\), user \d+ nbd .* [1-9]\d*(\.\d+)?\/s/ })
    .waitFor();
  await page.getByRole("button", { name: "Detach", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Detach work" });
  await dialog.getByText("1 client is connected").waitFor();
  await dialog.getByRole("button", { name: "Disconnect and detach" }).click();
  await dialog.waitFor({ state: "detached" });
  await go(page, "Overview");
  await page.getByText("No device is attached yet").waitFor();
});

it("finds a device among others, and shows what it was asked lately", async () => {
  const vsl = await service();
  vsl.device("one");
  vsl.device("other");
  const page = await open(vsl);
  await inTree(page, "other").waitFor();
  await page
    .getByRole("img", { name: /^Last 15 minutes: reads up to 0\/s/ })
    .nth(1)
    .waitFor();
  await page.getByLabel("Search the devices").fill("other.vsl");
  await inTree(page, "one").waitFor({ state: "detached" });
  await inTree(page, "other").waitFor();
  await page.getByLabel("Search the devices").fill("nobody");
  await page.getByText("No device here has these words").waitFor();
});

it("tells every figure, finds it and copies it", async () => {
  const vsl = await service();
  vsl.device("work");
  const page = await open(vsl);
  await chooseDevice(page, "work");
  await go(page, "Info");
  const uuid = vsl.vsl("status", "work", "--field", "uuid");
  await page.getByText(uuid, { exact: true }).waitFor();
  await page.getByLabel("Search figures").fill("uuid");
  await eventually(
    () => page.getByRole("row").count(),
    (rows) => rows < 5,
  );
  await page.getByText(uuid, { exact: true }).waitFor();
});

it("predicts before it formats, and formats only what was named", async () => {
  const vsl = await service();
  vsl.device("card", "--emulate", "iodrive-320-mlc", "--scale", "64");
  const before = Number(vsl.vsl("status", "card", "--field", "bytes"));
  const page = await open(vsl);
  await chooseDevice(page, "card");
  await go(page, "Format");
  await page.getByLabel(/^Maximum writes/).check();
  await page.getByRole("button", { name: "Predict", exact: true }).click();
  const table = page.getByRole("region", { name: "Prediction" }).getByRole("table");
  await table.waitFor({ timeout: 480_000 });
  expect(await table.getByRole("row").count()).toBe(6);
  const iops = async (row: number) =>
    Number((await table.getByRole("row").nth(row).locator(".bar-cell").textContent())?.replace(/,/g, ""));
  expect(await iops(1)).toBeGreaterThan(0);
  await page.getByText("What this choice would do is predicted above.").waitFor();
  // Whoever looks elsewhere first finds it again.
  await go(page, "Live");
  await go(page, "Format");
  await table.waitFor();
  await page.getByLabel(/^Maximum writes/).check();
  await page.getByText("What this choice would do is predicted above.").waitFor();

  await page.getByRole("button", { name: "Format card…" }).click();
  const dialog = page.getByRole("dialog", { name: "Format card" });
  const destroy = dialog.getByRole("button", { name: "Destroy and format" });
  expect(await destroy.isDisabled()).toBe(true);
  await dialog.getByLabel(/^Type card/).fill("cart");
  expect(await destroy.isDisabled()).toBe(true);
  await dialog.getByLabel(/^Type card/).fill("card");
  await destroy.click();
  await dialog.waitFor({ state: "detached" });
  await inState(vsl, "card", "attached");
  const after = Number(vsl.vsl("status", "card", "--field", "bytes"));
  expect(after / before).toBeGreaterThan(0.45);
  expect(after / before).toBeLessThan(0.55);
});

it("predicts of a device on files only what its layer does", async () => {
  const vsl = await service();
  vsl.device("plain");
  const page = await open(vsl);
  await chooseDevice(page, "plain");
  // The workloads come late: nothing is asked before they are there.
  let come = () => {};
  const late = new Promise<void>((resolve) => {
    come = resolve;
  });
  await page.route("**/lab/workloads", async (route) => {
    await late;
    await route.continue();
  });
  await go(page, "Format");
  const predict = page.getByRole("button", { name: "Predict", exact: true });
  expect(await predict.isDisabled()).toBe(true);
  come();
  await predict.click();
  const table = page.getByRole("region", { name: "Prediction" }).getByRole("table");
  await table.waitFor({ timeout: 480_000 });
  const headings = await table.getByRole("columnheader").allTextContents();
  expect(headings).toEqual(["Capacity", "Over-provisioning", "Write amplification"]);
  // The cards and the table say the same of a choice.
  const card = await page.locator(".option", { hasText: "Improved writes" }).textContent();
  const row = await table.getByRole("row", { name: /improved-write/ }).textContent();
  expect(row).toContain(card?.match(/\d+ %/)?.[0]);
  // What took long is listed.
  await go(page, "Log");
  await page.getByRole("button", { name: "Jobs" }).click();
  const job = page.getByRole("region", { name: "Jobs" }).getByRole("row", { name: /prediction of plain/ });
  expect(await job.textContent()).toContain("done");
});

it("plays a power cut, and switches on again", async () => {
  const vsl = await service();
  const uri = vsl.device("db", "--drills");
  await fio(uri, "--rw=write", "--bs=64k", "--size=8m", "--end_fsync=1");
  const page = await open(vsl);
  await chooseDevice(page, "db");
  await go(page, "Drills");
  await page.getByRole("button", { name: "Begin Power cut" }).click();
  const dialog = page.getByRole("dialog", { name: "Power cut on db" });
  await inState(vsl, "db", "attached");
  await dialog.getByRole("button", { name: "Begin Power cut" }).click();
  await page.getByText("The power is off.").waitFor();
  await inState(vsl, "db", "powered-off");
  await page.getByRole("button", { name: "Switch it on" }).click();
  await page.getByText("The power is off.").waitFor({ state: "detached" });
  await inState(vsl, "db", "attached");
  await page.getByRole("region", { name: "Events" }).getByText("power-cut").waitFor();
});
