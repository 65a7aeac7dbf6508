import { expect, it } from "vitest";
import { parseSize } from "../src/text/size";

it("sizes are read as `vsl` reads them", () => {
  const known: [string, number][] = [
    ["1", 1],
    ["512B", 512],
    ["8GiB", 8 * 1024 ** 3],
    ["8g", 8 * 1024 ** 3],
    ["8 GB", 8e9],
    ["1.5TiB", 1.5 * 1024 ** 4],
    [" 64MiB ", 64 * 1024 ** 2],
  ];
  for (const [text, bytes] of known) expect(parseSize(text), text).toBe(bytes);
  for (const text of ["", "0", "-1", "GiB", "1 parsec", "1.3B", "1e3", "99999999PiB"]) {
    expect(parseSize(text), text).toBe(null);
  }
});
