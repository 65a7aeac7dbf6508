import { signal } from "@preact/signals";

/** What went wrong, what may be done about it, and its sort, as the service says it. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly help: string,
    readonly kind: string,
  ) {
    super(message);
  }
}

export const noAnswer = () =>
  new Failure(
    "the service does not answer",
    "start it with `vsl up`; the console finds it again by itself",
    "offline",
  );

/** Which service is asked: this one, or another host by its name. */
export const host = signal<string | null>(null);
/** Set when an answer says that nobody is signed in. */
export const signedOut = signal(false);

const ROOT = "api/v1";

/** The address of a path of the API, at the host that is looked at. */
export function address(path: string, at: string | null = host.value): string {
  return at === null ? `${ROOT}${path}` : `${ROOT}/hosts/${encodeURIComponent(at)}${path}`;
}

interface Options {
  /** Another host than the one looked at; null is this service. */
  at?: string | null;
  signal?: AbortSignal;
}

async function ask<T>(method: string, path: string, body: unknown, options: Options): Promise<T> {
  const init: RequestInit = { method, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) {
    init.headers = { "Content-Type": "application/json" };
    init.body = JSON.stringify(body);
  }
  if (options.signal) init.signal = options.signal;
  let response: Response;
  try {
    response = await fetch(address(path, "at" in options ? (options.at ?? null) : host.value), init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw noAnswer();
  }
  if (response.status === 401) signedOut.value = true;
  const text = await response.text();
  let answer: unknown;
  if (text !== "") {
    try {
      answer = JSON.parse(text);
    } catch {
      throw new Failure(
        `${method} ${path}: the answer is not JSON`,
        "something between browser and service answers in its place",
        "failed",
      );
    }
  }
  if (response.ok) return answer as T;
  const failure = (answer ?? {}) as { error?: string; help?: string; kind?: string };
  throw new Failure(
    failure.error ?? `${method} ${path}: status ${response.status}`,
    failure.help ?? "",
    failure.kind ?? "failed",
  );
}

export const get = <T>(path: string, options: Options = {}) => ask<T>("GET", path, undefined, options);
export const post = <T>(path: string, body: unknown = {}, options: Options = {}) =>
  ask<T>("POST", path, body, options);
export const put = <T>(path: string, body: unknown, options: Options = {}) =>
  ask<T>("PUT", path, body, options);
export const patch = <T>(path: string, body: unknown, options: Options = {}) =>
  ask<T>("PATCH", path, body, options);
export const remove = <T>(path: string, options: Options = {}) => ask<T>("DELETE", path, undefined, options);

/** A segment of a path. */
export const seg = encodeURIComponent;

export function failure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  return new Failure(error instanceof Error ? error.message : String(error), "", "failed");
}
