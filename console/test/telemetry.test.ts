import { effect } from "@preact/signals";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Sample } from "../src/api/types";
import { draw, forget, ring, take, value } from "../src/state/telemetry";

const page = { visibilityState: "visible" };
vi.stubGlobal("document", page);

const sample = (at_ms: number, read_iops: number) =>
  ({ at_ms, service: {}, devices: { a: { values: { read_iops } } } }) as unknown as Sample;

describe("telemetry", () => {
  beforeEach(forget);

  it("draws with each sample once", () => {
    const drawn: (number | null)[] = [];
    const stop = effect(() => {
      drawn.push(value("a", "read_iops"));
    });
    take(sample(1000, 5));
    take(sample(2000, 6));
    stop();
    expect(drawn).toEqual([null, 5, 6]);
    expect(value("a", "nothing")).toBeNull();
  });

  it("draws nothing in the background, and forgets none of it", () => {
    page.visibilityState = "hidden";
    const drawn: (number | null)[] = [];
    const stop = effect(() => {
      drawn.push(value("a", "read_iops"));
    });
    for (let second = 1; second <= 5; second += 1) take(sample(second * 1000, second));
    expect(drawn).toEqual([null]);
    page.visibilityState = "visible";
    draw();
    stop();
    expect(drawn).toEqual([null, 5]);
    expect(ring("a").slice(["read_iops"], 0, 9).values).toEqual([[1, 2, 3, 4, 5]]);
  });
});
