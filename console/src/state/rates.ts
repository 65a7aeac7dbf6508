import { useRef } from "preact/hooks";
import type { Client } from "../api/types";

/** What a client asked for since it was looked at before, by the second. */
export interface Rates {
  requests: number;
  read: number;
  written: number;
}

/** The same client as before: a later one may get its number, and does not come in the same second. */
export const keyOf = ({ id, since }: Client) => `${id} ${since}`;

/** The rates of those that were there before, after so many seconds. */
export function between(
  before: readonly Client[],
  now: readonly Client[],
  seconds: number,
): Map<string, Rates> {
  const known = new Map(before.map((client) => [keyOf(client), client]));
  const found = new Map<string, Rates>();
  for (const client of now) {
    const was = known.get(keyOf(client));
    if (was === undefined) continue;
    const rate = (now: number, before: number) => Math.max(0, now - before) / seconds;
    found.set(keyOf(client), {
      requests: rate(client.requests, was.requests),
      read: rate(client.read_bytes, was.read_bytes),
      written: rate(client.written_bytes, was.written_bytes),
    });
  }
  return found;
}

/** The rates of clients that are looked at again and again. */
export function useRates(clients: readonly Client[]): Map<string, Rates> {
  const seen = useRef({ clients, at: performance.now(), rates: new Map<string, Rates>() });
  if (clients !== seen.current.clients) {
    const at = performance.now();
    const rates = between(seen.current.clients, clients, (at - seen.current.at) / 1000);
    seen.current = { clients, at, rates };
  }
  return seen.current.rates;
}
