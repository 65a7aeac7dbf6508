import type { Alert } from "../api/types";
import { cure } from "../state/cure";

/** The way to the page on which what an alert tells of is mended. */
export function Cure({ of }: { of: Alert }) {
  const found = cure(of);
  return found && <a href={found.href}>{found.label} →</a>;
}
