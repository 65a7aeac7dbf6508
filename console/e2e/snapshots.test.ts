import { expect, it } from "vitest";
import { chooseDevice, eventually, go, setUp } from "./browser";
import { fio } from "./service";

const { service, open } = setUp();

it("makes, holds, renames and deletes snapshots, and rolls back to one after it has asked", async () => {
  const vsl = await service();
  const uri = vsl.device("db");
  await fio(uri, "--rw=write", "--bs=64k", "--size=4m", "--end_fsync=1");
  const page = await open(vsl);
  await chooseDevice(page, "db");
  await go(page, "Snapshots");
  await page.getByText("No snapshot yet").waitFor();
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Make a snapshot…" }).click();
  await dialog.getByLabel("Name").fill("a/b");
  await dialog.getByRole("button", { name: "Make", exact: true }).click();
  await eventually(
    () => dialog.getByLabel("Name").getAttribute("aria-invalid"),
    (invalid) => invalid === "true",
  );
  await dialog.getByLabel("Name").fill("monday");
  await dialog.getByRole("button", { name: "Make", exact: true }).click();
  const row = page.getByRole("row", { name: /^monday/ });
  await row.waitFor();
  await fio(uri, "--rw=write", "--bs=64k", "--size=4m", "--end_fsync=1");
  await page.getByRole("img", { name: /^1 snapshot; the most that one holds alone is 4.19 MB/ }).waitFor();
  await row.getByRole("button", { name: /^Hold/ }).click();
  await row.getByText("held", { exact: true }).waitFor();
  expect(await row.getByRole("button", { name: /^Delete/ }).isDisabled()).toBe(true);
  await row.getByRole("button", { name: /^Release/ }).click();
  await row.getByRole("button", { name: /^Rename/ }).click();
  await dialog.getByLabel("New name").fill("tuesday");
  await dialog.getByRole("button", { name: "Rename", exact: true }).click();
  const renamed = page.getByRole("row", { name: /^tuesday/ });
  await renamed.getByRole("button", { name: /^Roll back/ }).click();
  const back = dialog.getByRole("button", { name: "Roll back", exact: true });
  expect(await back.isDisabled()).toBe(true);
  await dialog.getByLabel(/^Type db/).fill("db");
  await back.click();
  await dialog.waitFor({ state: "detached" });
  await eventually(
    async () => vsl.vsl("snapshot", "diff", "db", "tuesday"),
    (differs) => differs === "",
  );
  await renamed.getByRole("button", { name: /^Delete/ }).click();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("No snapshot yet").waitFor();
});

it("sets, shows and ends a schedule", async () => {
  const vsl = await service();
  vsl.device("db");
  const page = await open(vsl);
  await chooseDevice(page, "db");
  await go(page, "Snapshots");
  await page.getByLabel("Hours kept").fill("12");
  await page.getByLabel("Days kept").fill("");
  await page.getByRole("button", { name: "Begin", exact: true }).click();
  await page.getByText("by itself, the last one just now").waitFor();
  await page.getByRole("row", { name: /^weekly-/ }).waitFor();
  expect(vsl.vsl("snapshot", "schedule", "db")).toMatch(/^schedule: keeps 12 hourly, 4 weekly; made last: /);
  const change = page.getByRole("button", { name: "Change it" });
  expect(await change.isDisabled()).toBe(true);
  await page.getByLabel("Weeks kept").fill("1001");
  expect(await change.isDisabled()).toBe(true);
  await page.getByLabel("Weeks kept").fill("8");
  await change.click();
  await eventually(
    async () => vsl.vsl("snapshot", "schedule", "db"),
    (schedule) => schedule.includes("12 hourly, 8 weekly"),
  );
  await page.getByRole("button", { name: "End it" }).click();
  await page.getByText("makes no snapshots of db by itself").waitFor();
  await page.getByRole("row", { name: /^weekly-/ }).waitFor();
  expect(vsl.vsl("snapshot", "schedule", "db")).toBe("no schedule");
});
