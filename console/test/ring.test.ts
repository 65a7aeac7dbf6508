import { describe, expect, it } from "vitest";
import { Ring } from "../src/state/ring";

const INFINITE = Number.POSITIVE_INFINITY;

describe("Ring", () => {
  it("keeps the newest rows only", () => {
    const ring = new Ring(3);
    for (let at = 1; at <= 5; at += 1) ring.push(at, { a: at * 10 });
    expect(ring.length).toBe(3);
    expect([ring.oldest, ring.newest]).toEqual([3, 5]);
    expect(ring.slice(["a"], 0, INFINITE)).toEqual({ at: [3, 4, 5], values: [[30, 40, 50]] });
  });

  it("knows what was not known", () => {
    const ring = new Ring(4);
    ring.push(1, { a: 1 });
    ring.push(2, { b: 2, flag: true, none: null });
    expect(ring.slice(["a", "b", "flag", "never"], 0, INFINITE).values).toEqual([
      [1, null],
      [null, 2],
      [null, 1],
      [null, null],
    ]);
    expect(ring.has("none")).toBe(false);
  });

  it("forgets a value when its place is used anew", () => {
    const ring = new Ring(2);
    ring.push(1, { a: 1 });
    ring.push(2, { a: 2 });
    ring.push(3, {});
    expect(ring.slice(["a"], 0, INFINITE).values).toEqual([[2, null]]);
  });

  it("takes no row twice and none out of order", () => {
    const ring = new Ring(4);
    ring.push(2, { a: 1 });
    ring.push(2, { a: 9 });
    ring.push(1, { a: 9 });
    expect(ring.slice(["a"], 0, INFINITE)).toEqual({ at: [2], values: [[1]] });
  });

  it("gives a span, and parts what is far apart", () => {
    const ring = new Ring(8);
    for (const at of [1, 2, 3, 10, 11]) ring.push(at, { a: at });
    expect(ring.slice(["a"], 2, 10, 2.5)).toEqual({ at: [2, 3, 6.5, 10], values: [[2, 3, null, 10]] });
    expect(ring.slice(["a"], 12, 20).at).toEqual([]);
    expect(new Ring(2).slice(["a"], 0, INFINITE).at).toEqual([]);
  });

  it("takes rows that stand as columns, up to a moment", () => {
    const ring = new Ring(8);
    ring.append([1, 2, 3], { a: [1, null, 3], b: [4, 5, 6] }, 2.5);
    ring.append([2, 4], { a: [9, 7] });
    expect(ring.slice(["a", "b"], 0, INFINITE)).toEqual({
      at: [1, 2, 4],
      values: [
        [1, null, 7],
        [4, 5, null],
      ],
    });
  });

  it("does not grow with time", () => {
    const ring = new Ring(3600);
    for (let at = 0; at < 40_000; at += 1) ring.push(at, { a: at });
    expect(ring.length).toBe(3600);
    expect(ring.slice(["a"], 0, INFINITE).at).toHaveLength(3600);
  });
});
