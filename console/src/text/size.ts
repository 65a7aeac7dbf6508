const UNITS: Record<string, number> = { "": 1, b: 1 };
for (const [power, letter] of [..."kmgtp"].entries()) {
  const step = power + 1;
  UNITS[`${letter}ib`] = 1024 ** step;
  UNITS[letter] = 1024 ** step;
  UNITS[`${letter}b`] = 1000 ** step;
}

/** A size as `vsl` takes it, in bytes: `8GiB` and `8G` count in 1024, `8GB` in 1000. Null where it is none. */
export function parseSize(text: string): number | null {
  const found = /^(\d+(?:\.\d+)?) *([a-z]*)$/i.exec(text.trim());
  const unit = UNITS[found?.[2]?.toLowerCase() ?? "-"];
  if (!found || unit === undefined) return null;
  const bytes = Number(found[1]) * unit;
  return Number.isSafeInteger(bytes) && bytes > 0 ? bytes : null;
}
