import { useState } from "preact/hooks";
import { get } from "../api/client";
import { sayFailure } from "./action";
import { type Resource, useResource } from "./resource";

const PAGE = 100;

interface Paged<Answer, Item> {
  /** Null while the service is asked. */
  items: Item[] | null;
  error: Resource<Answer>["error"];
  /** Asks for those before the oldest; null where there are none. */
  older: (() => Promise<void>) | null;
}

/** A list that is answered in pages, the newest first: the newest page is kept current, older ones are asked for. With null nothing is asked. */
export function usePaged<Answer, Item>(
  path: string | null,
  every: number,
  itemsOf: (answer: Answer) => Item[],
  numberOf: (item: Item) => number,
): Paged<Answer, Item> {
  const { value, error } = useResource<Answer>(path && `${path}?limit=${PAGE}`, every);
  const [fetched, setFetched] = useState<readonly Item[]>([]);
  const [ended, setEnded] = useState(false);
  if (value === null) return { items: null, error, older: null };
  const known = new Map<number, Item>();
  for (const item of [...fetched, ...itemsOf(value)]) known.set(numberOf(item), item);
  const items = [...known.values()].sort((a, b) => numberOf(b) - numberOf(a));
  const last = items[items.length - 1];
  const older = async () => {
    if (!last) return;
    let found: Item[];
    try {
      found = itemsOf(await get<Answer>(`${path}?limit=${PAGE}&before=${numberOf(last)}`));
    } catch (error) {
      sayFailure(error);
      return;
    }
    // What is shown is kept with them: the newest page moves on, and would leave a gap.
    setFetched([...items, ...found]);
    setEnded(found.length < PAGE);
  };
  return { items, error, older: items.length >= PAGE && !ended ? older : null };
}
