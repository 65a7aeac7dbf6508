import { computed, signal } from "@preact/signals";

/** Pages of one device; the others are of the host. */
export const DEVICE_PAGES = [
  "live",
  "snapshots",
  "lifetime",
  "info",
  "format",
  "configure",
  "drills",
] as const;
export const HOST_PAGES = ["overview", "caches", "alerts", "lab", "log", "hosts", "settings"] as const;
export type DevicePage = (typeof DEVICE_PAGES)[number];
export type HostPage = (typeof HOST_PAGES)[number];
export type Page = DevicePage | HostPage;

export interface Route {
  page: Page;
  /** The device's name on its pages; on others the thing that is looked at, such as a lab run. */
  subject: string | null;
}

const isPage = (word: string): word is Page =>
  (DEVICE_PAGES as readonly string[]).includes(word) || (HOST_PAGES as readonly string[]).includes(word);

export function isDevicePage(page: Page): page is DevicePage {
  return (DEVICE_PAGES as readonly string[]).includes(page);
}

/** Reads `#/page/subject`. Whatever is not understood is the overview. */
export function parse(hash: string): Route {
  const [, page = "", subject = ""] = hash.replace(/^#/, "").split("/");
  if (!isPage(page)) return { page: "overview", subject: null };
  return { page, subject: subject === "" ? null : decode(subject) };
}

export function href(page: Page, subject?: string | null): string {
  return subject ? `#/${page}/${encodeURIComponent(subject)}` : `#/${page}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const hash = signal(window.location.hash);
window.addEventListener("hashchange", () => {
  hash.value = window.location.hash;
});

export const route = computed(() => parse(hash.value));

export function go(page: Page, subject?: string | null): void {
  window.location.hash = href(page, subject);
}
