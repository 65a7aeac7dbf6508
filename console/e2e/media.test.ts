import { readFileSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { chooseDevice, eventually, go, inState, inTree, setUp } from "./browser";
import { fio } from "./service";

const { service, open } = setUp();

it("creates an encrypted device, gives it another key, and formats it plain", async () => {
  const vsl = await service();
  writeFileSync(vsl.file("disk.key"), Buffer.alloc(32, 7));
  const page = await open(vsl);
  await page.getByRole("button", { name: "Create a device" }).click();
  const dialog = page.getByRole("dialog", { name: "Create a device" });
  const create = dialog.getByRole("button", { name: "Create", exact: true });
  expect(await create.isDisabled()).toBe(true);
  await dialog.getByLabel("New file on the service's machine").first().fill(vsl.file("safe.vsl"));
  await dialog.getByLabel("Capacity", { exact: true }).fill("lots");
  expect(await create.isDisabled()).toBe(true);
  await dialog.getByLabel("Capacity", { exact: true }).fill("64MiB");
  await dialog.getByLabel("Encrypt what is stored").check();
  await dialog.getByLabel("Passphrase", { exact: true }).fill("correct horse");
  await dialog.getByLabel("The same again").fill("correct house");
  expect(await create.isDisabled()).toBe(true);
  await dialog.getByLabel("The same again").fill("correct horse");
  await create.click();
  await inTree(page, "safe").waitFor();
  await inState(vsl, "safe", "attached");
  expect(vsl.vsl("status", "safe", "--field", "key_slots")).toBe("0: passphrase");

  // What is there is not overwritten.
  await page.getByRole("button", { name: "Create a device" }).click();
  await dialog.getByLabel("New file on the service's machine").first().fill(vsl.file("disk.key"));
  await create.click();
  await page.getByText("disk.key", { exact: false }).first().waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  expect(readFileSync(vsl.file("disk.key"))).toEqual(Buffer.alloc(32, 7));

  await chooseDevice(page, "safe");
  await go(page, "Configure");
  await page.getByRole("button", { name: "Add a key…" }).click();
  const keys = page.getByRole("dialog", { name: "Add a key of safe" });
  await keys.getByLabel("Passphrase", { exact: true }).first().fill("correct horse");
  await keys.getByLabel("Opened by").nth(1).selectOption("key file");
  await keys.getByLabel("Key file on the service's machine").fill(vsl.file("disk.key"));
  await keys.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByText("key slot 1: key file").waitFor();
  await page.getByRole("combobox", { name: "Durability" }).selectOption("write-through");
  await page.getByText("Everything that was answered survives a power cut").waitFor();
  expect(vsl.vsl("config", "safe", "durability")).toBe("write-through");

  await go(page, "Format");
  await page.getByRole("button", { name: "Format safe…" }).click();
  const format = page.getByRole("dialog", { name: "Format safe" });
  await format.getByLabel(/^Encrypt what will be stored/).uncheck();
  await format.getByLabel(/^Type safe/).fill("safe");
  await format.getByRole("button", { name: "Destroy and format" }).click();
  await format.waitFor({ state: "detached" });
  await eventually(
    async () => vsl.vsl("status", "safe", "--json"),
    (status) => !status.includes("aes-256-gcm"),
  );
  // No secret is left in any log.
  expect(vsl.vsl("audit", "-n", "100")).not.toContain("correct horse");
});

it("erases only what was named, and gives a certificate", async () => {
  const vsl = await service();
  const uri = vsl.device("old");
  await fio(uri, "--rw=write", "--bs=64k", "--size=16m", "--end_fsync=1");
  const before = vsl.vsl("status", "old", "--field", "uuid");
  const page = await open(vsl);
  await chooseDevice(page, "old");
  await go(page, "Format");
  await page.getByRole("button", { name: "Erase old…" }).click();
  const dialog = page.getByRole("dialog", { name: "Erase old" });
  const destroy = dialog.getByRole("button", { name: "Destroy and erase" });
  await dialog.getByLabel(/^Purge/).check();
  expect(await dialog.getByLabel(/^Crypto/).count()).toBe(0);
  await dialog.getByLabel(/^Type old/).fill("odd");
  expect(await destroy.isDisabled()).toBe(true);
  expect(vsl.vsl("status", "old", "--field", "uuid")).toBe(before);
  await dialog.getByLabel(/^Type old/).fill("old");
  await destroy.click();
  await dialog.waitFor({ state: "detached" });
  const panel = page.getByRole("region", { name: "Erase" });
  await panel.getByText("level purge", { exact: false }).waitFor();
  await panel.getByText(before).waitFor();
  await inState(vsl, "old", "attached");
  expect(vsl.vsl("status", "old", "--field", "uuid")).not.toBe(before);
  expect(vsl.vsl("status", "old", "--field", "mapped_sectors")).toBe("0");
});
