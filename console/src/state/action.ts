import { signal } from "@preact/signals";
import { failure } from "../api/client";
import { refresh } from "./fleet";

export interface Said {
  id: number;
  tone: "ok" | "critical";
  what: string;
  help: string;
}

/** What was done lately, and what went wrong, until it is put away. */
export const said = signal<readonly Said[]>([]);

let next = 1;

function say(tone: Said["tone"], what: string, help = ""): void {
  const id = next;
  next += 1;
  said.value = [...said.value.slice(-3), { id, tone, what, help }];
  // A failure stays until it was read.
  if (tone === "ok") setTimeout(() => putAway(id), 5000);
}

export function putAway(id: number): void {
  said.value = said.value.filter((one) => one.id !== id);
}

/** What went wrong. */
export type Problem = Pick<Said, "what" | "help">;

let listener: ((problem: Problem) => void) | null = null;

/** Does something whose failures one place shows, instead of a message beside the page: a dialog lies over those. */
export async function withFailuresTo<T>(
  show: (problem: Problem) => void,
  work: () => Promise<T>,
): Promise<T> {
  const before = listener;
  listener = show;
  try {
    return await work();
  } finally {
    listener = before;
  }
}

/** Says what went wrong, until somebody puts it away. */
export function sayFailure(error: unknown): void {
  const { message, help } = failure(error);
  if (listener) listener({ what: message, help });
  else say("critical", message, help);
}

/** Does something at the service, says what came of it, and looks at the devices anew. Answers whether it was done. */
export async function act(what: string, work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    say("ok", what);
    void refresh();
    return true;
  } catch (error) {
    sayFailure(error);
    return false;
  }
}
