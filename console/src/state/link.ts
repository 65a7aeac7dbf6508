import { computed, effect, signal } from "@preact/signals";
import { type Failure, failure, get, host, post, remove, signedOut } from "../api/client";
import type { Role, Session } from "../api/types";

// Whether there is a service to talk to, who we are there, and how it is found again.

export type Phase = "starting" | "signed-out" | "online" | "offline";

export const session = signal<Session | null>(null);
export const phase = signal<Phase>("starting");
/** Why there is no connection, as far as it is known. */
export const trouble = signal<Failure | null>(null);
/** When the connection was lost, milliseconds since 1970. */
export const lostAt = signal<number | null>(null);

/** The roles: each may what those before it may. */
export const ROLES: readonly Role[] = ["viewer", "operator", "administrator"];

/** Whether the one who is signed in may do what takes this role. */
export function may(role: Role): boolean {
  const mine = session.value?.role;
  return mine !== undefined && ROLES.indexOf(mine) >= ROLES.indexOf(role);
}

export const online = computed(() => phase.value === "online");

/** Takes the token out of the address, so that it neither stays in the history nor is copied with the address. */
function tokenOfAddress(): string | null {
  const found = /^#token=([^&]+)/.exec(window.location.hash);
  if (!found?.[1]) return null;
  window.history.replaceState(null, "", `${window.location.pathname}#/overview`);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
  return decodeURIComponent(found[1]);
}

/** Kept by this page only, and only in memory: a service that was started again knows no session of before. */
let token = tokenOfAddress();
let waiting: ReturnType<typeof setTimeout> | undefined;
let wait = 500;

export async function connect(): Promise<void> {
  clearTimeout(waiting);
  try {
    session.value = await who();
    if (host.value !== null) await get("/health");
    signedOut.value = false;
    wait = 500;
    trouble.value = null;
    lostAt.value = null;
    phase.value = "online";
  } catch (error) {
    const why = failure(error);
    if (why.kind === "unauthenticated") {
      trouble.value = token === null ? null : why;
      token = null;
      signedInOnce = false;
      session.value = null;
      phase.value = "signed-out";
      return;
    }
    lost(why);
  }
}

let signedInOnce = false;

/** Who is signed in; where nobody is, whoever the token stands for. */
async function who(): Promise<Session> {
  if (token === null || signedInOnce) {
    try {
      return await get<Session>("/session", { at: null });
    } catch (error) {
      if (token === null || failure(error).kind !== "unauthenticated") throw error;
    }
  }
  const session = await post<Session>("/session", { token }, { at: null });
  signedInOnce = true;
  return session;
}

/** The connection is gone: say so, and look for the service until it is there again. */
export function lost(why: Failure): void {
  trouble.value = why;
  lostAt.value ??= Date.now();
  phase.value = "offline";
  clearTimeout(waiting);
  waiting = setTimeout(() => void connect(), wait);
  wait = Math.min(wait * 1.6, 4000);
}

export async function signIn(
  credentials: { token: string } | { name: string; password: string },
): Promise<void> {
  session.value = await post<Session>("/session", credentials, { at: null });
  if ("token" in credentials) token = credentials.token;
  signedInOnce = true;
  signedOut.value = false;
  await connect();
}

export async function signOut(): Promise<void> {
  await remove("/session", { at: null });
  token = null;
  session.value = null;
  phase.value = "signed-out";
}

effect(() => {
  if (signedOut.value && phase.peek() === "online") void connect();
});
