// What the browser keeps for its user: appearance and the choice of device. Storage may be forbidden, and then nothing is kept.

const PREFIX = "openvsl.";

export function recall(name: string): string | null {
  try {
    return window.localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

export function remember(name: string, value: string | null): void {
  try {
    if (value === null) window.localStorage.removeItem(PREFIX + name);
    else window.localStorage.setItem(PREFIX + name, value);
  } catch {
    // Forbidden or full: the choice holds until the page is closed.
  }
}
