import { createContext } from "preact";
import type { Problem } from "../state/action";

/** What went wrong in the dialog around, and how a field says that it shows it. */
export const Problems = createContext<{ problem: Problem | null; claim: (problem: Problem) => void }>({
  problem: null,
  claim: () => undefined,
});
