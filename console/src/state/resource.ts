import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type Failure, failure, get } from "../api/client";
import { act } from "./action";
import { phase } from "./link";

/** Whom to ask: the host that is looked at, or always the service that the console came from. */
export type Where = "looked at" | "here";

export interface Resource<T> {
  value: T | null;
  error: Failure | null;
  /** Asks again. */
  again: () => void;
  /** Does something at the service, as `act` does, and asks again. */
  change: (what: string, work: () => Promise<unknown>) => Promise<boolean>;
}

/** What a path of the API answers, asked for again every so many milliseconds, and when the connection is back. With null nothing is asked. */
export function useResource<T>(path: string | null, every = 0, at: Where = "looked at"): Resource<T> {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<Failure | null>(null);
  const [turn, setTurn] = useState(0);
  const shownFor = useRef(path);
  const connected = phase.value === "online";

  // biome-ignore lint/correctness/useExhaustiveDependencies: `turn` asks again.
  useEffect(() => {
    if (shownFor.current !== path) {
      shownFor.current = path;
      setValue(null);
      setError(null);
    }
    if (path === null || !connected) return;
    const abort = new AbortController();
    const ask = async () => {
      try {
        const answer = await get<T>(
          path,
          at === "here" ? { at: null, signal: abort.signal } : { signal: abort.signal },
        );
        setValue(answer);
        setError(null);
      } catch (problem) {
        if (!abort.signal.aborted) setError(failure(problem));
      }
    };
    void ask();
    const timer = every > 0 ? setInterval(() => void ask(), every) : undefined;
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [path, every, at, connected, turn]);

  const again = useCallback(() => setTurn((turn) => turn + 1), []);
  const change = async (what: string, work: () => Promise<unknown>) => {
    const done = await act(what, work);
    again();
    return done;
  };
  return { value, error, again, change };
}
