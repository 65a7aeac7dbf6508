import { expect, it } from "vitest";
import { type Draft, requestOf } from "../src/pages/overview/create";
import { NO_OPENER, openerOf } from "../src/parts/OpenerFields";

const draft: Draft = {
  paths: "/srv/db.vsl",
  kind: "size",
  size: "1GiB",
  card: "iodrive-320-mlc",
  scale: "64",
  parity: 2,
  sector: 4096,
  capacity: "advertised",
  label: " ",
  drills: false,
  encrypt: false,
  opener: NO_OPENER,
  attach: true,
  remember: true,
};

it("a new device is asked for as the service takes it", () => {
  expect(requestOf(draft)).toEqual({
    paths: ["/srv/db.vsl"],
    size_bytes: 1024 ** 3,
    sector_bytes: 4096,
    capacity: "advertised",
    attach: true,
    drills: false,
    remember: true,
  });
  expect(requestOf({ ...draft, paths: "/a/0, /b/1,/c/2" })).toMatchObject({
    paths: ["/a/0", "/b/1", "/c/2"],
    parity: 2,
  });
  const card = requestOf({ ...draft, kind: "emulate", encrypt: true });
  expect(card).toMatchObject({ emulate: "iodrive-320-mlc", scale: 64 });
  expect(card).not.toHaveProperty("size_bytes");
  expect(card).not.toHaveProperty("encrypt");
});

it("what will not do is not sent", () => {
  for (const wrong of [{ paths: "" }, { paths: "db.vsl" }, { paths: "/a,b" }, { size: "much" }]) {
    expect(requestOf({ ...draft, ...wrong }), JSON.stringify(wrong)).toBe(null);
  }
  expect(requestOf({ ...draft, kind: "emulate", scale: "0" })).toBe(null);
  expect(requestOf({ ...draft, encrypt: true })).toBe(null);
});

it("a new passphrase is typed twice, and is not remembered with the device", () => {
  const opener = { ...NO_OPENER, passphrase: "p", again: "q" };
  expect(openerOf(opener, true)).toBe(null);
  expect(openerOf(opener, false)).toEqual({ passphrase: "p" });
  const typed = requestOf({ ...draft, encrypt: true, opener: { ...opener, again: "p" } });
  expect(typed).toMatchObject({ encrypt: { passphrase: "p" }, remember: false });
  const file = { ...NO_OPENER, kind: "key file" as const, keyFile: "/k" };
  expect(requestOf({ ...draft, encrypt: true, opener: file })).toMatchObject({
    encrypt: { key_file: "/k" },
    remember: true,
  });
  expect(openerOf({ ...file, keyFile: "k" }, true)).toBe(null);
});
