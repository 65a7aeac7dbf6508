import { expect, it } from "vitest";
import type { Client } from "../src/api/types";
import { between, keyOf } from "../src/state/rates";

const client = (id: number, since: number, requests: number): Client => ({
  id,
  since,
  requests,
  read_bytes: requests * 4096,
  written_bytes: requests * 512,
  protocol: "nbd",
  peer: "process 1 (fio), user 0",
  tls: false,
  in_flight: 0,
  memory_bytes: 0,
});

it("tells the rates of each client that was there before", () => {
  const now = [client(1, 10, 300), client(2, 10, 50)];
  const rates = between([client(1, 10, 100), client(2, 10, 50)], now, 2);
  expect(now.map((one) => rates.get(keyOf(one)))).toEqual([
    { requests: 100, read: 409_600, written: 51_200 },
    { requests: 0, read: 0, written: 0 },
  ]);
});

it("does not take a later client for the one that had its number", () => {
  expect(between([client(1, 10, 100)], [client(1, 99, 300)], 2).size).toBe(0);
});
