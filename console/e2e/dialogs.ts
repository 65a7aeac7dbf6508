import { writeFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { eventually } from "./browser";
import { fio, type Service } from "./service";

/** A dialog, and how it comes to show as much as it can. */
export interface Shown {
  name: string;
  /** On which page its button is. */
  page: string;
  open: (page: Page) => Promise<void>;
}

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
const dialog = (page: Page) => page.getByRole("dialog");

/** Every dialog about an encrypted device `safe` with two keys; of which `busy` another is that has a client. */
export const DIALOGS: readonly Shown[] = [
  {
    name: "create",
    page: "overview",
    open: async (page) => {
      await press(page, "Create a device");
      await dialog(page)
        .getByLabel("New file on the service's machine")
        .fill("/srv/a.vsl,/srv/b.vsl,/srv/c.vsl");
      await dialog(page).getByLabel("Encrypt what is stored").check();
      await dialog(page).getByLabel("Passphrase", { exact: true }).fill("correct horse");
      await dialog(page).getByLabel("The same again").fill("correct house");
      await dialog(page).getByText("Format, label and drills").click();
    },
  },
  { name: "attach", page: "overview", open: (page) => press(page, "Attach a device") },
  {
    name: "format",
    page: "format/safe",
    open: async (page) => {
      await press(page, "Format safe…");
      await dialog(page).getByLabel("Opened by").selectOption("key file");
    },
  },
  {
    name: "erase",
    page: "format/safe",
    open: async (page) => {
      await press(page, "Erase safe…");
      await dialog(page).getByLabel("Encrypt the empty device that is left").check();
    },
  },
  {
    name: "roll-back",
    page: "snapshots/busy",
    open: (page) => press(page, "Roll back… to monday"),
  },
  { name: "rename", page: "snapshots/busy", open: (page) => press(page, "Rename… monday") },
  { name: "delete", page: "snapshots/busy", open: (page) => press(page, "Delete… monday") },
  { name: "add-key", page: "configure/safe", open: (page) => press(page, "Add a key…") },
  { name: "change-key", page: "configure/safe", open: (page) => press(page, "Change a key…") },
  { name: "remove-key", page: "configure/safe", open: (page) => press(page, "Remove a key…") },
  { name: "load", page: "configure/safe", open: (page) => press(page, "Start a demo load…") },
  { name: "detach", page: "configure/busy", open: (page) => press(page, "Detach") },
  {
    name: "rule",
    page: "alerts",
    open: async (page) => {
      await press(page, "Rules");
      await press(page, "Add a rule");
    },
  },
];

/** The devices that they are about, and the client. */
export async function prepare(vsl: Service, page: Page): Promise<void> {
  for (const [name, byte] of [
    ["one.key", 1],
    ["two.key", 2],
  ] as const) {
    writeFileSync(vsl.file(name), Buffer.alloc(32, byte));
  }
  vsl.vsl("create", vsl.file("safe.vsl"), "--size", "64MiB", "--encrypt", "--key-file", vsl.file("one.key"));
  vsl.vsl("attach", vsl.file("safe.vsl"), "--key-file", vsl.file("one.key"));
  const addKey = ["add", "safe", "--key-file", vsl.file("one.key"), "--new-key-file", vsl.file("two.key")];
  vsl.vsl("key", ...addKey);
  const busy = vsl.device("busy");
  for (const name of ["monday", "tuesday"]) vsl.vsl("snapshot", "create", "busy", name);
  // It ends with its device.
  fio(busy, "--rw=randread", "--bs=4k", "--rate_iops=20", "--time_based", "--runtime=1200").catch(
    () => undefined,
  );
  await eventually(
    async () => vsl.vsl("status", "busy", "--json"),
    (status) => /"peer"/.test(status),
  );
  await page.getByRole("link", { name: "busy", exact: true }).first().waitFor();
}

/** Opens one, and closes it again once it was looked at. */
export async function withDialog(page: Page, shown: Shown, look: () => Promise<void>): Promise<void> {
  await page.evaluate((name) => {
    window.location.hash = `#/${name}`;
  }, shown.page);
  await shown.open(page);
  await dialog(page).waitFor();
  await look();
  await dialog(page)
    .getByRole("button", { name: /^(Cancel|Close)$/ })
    .click();
  await dialog(page).waitFor({ state: "detached" });
}
