// Moments as people read them: in the browser's time zone, with the day and the zone.

const two = (value: number) => String(value).padStart(2, "0");

export function day(ms: number): string {
  const date = new Date(ms);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export function clock(ms: number): string {
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** How far the clock of here is from UTC just then, such as UTC, UTC+1 or UTC-3:30. */
export function zone(ms: number): string {
  const minutes = -new Date(ms).getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const size = Math.abs(minutes);
  const rest = size % 60 === 0 ? "" : `:${two(size % 60)}`;
  return `UTC${minutes < 0 ? "-" : "+"}${Math.floor(size / 60)}${rest}`;
}

/** Day, time of day and zone. */
export function moment(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  return `${day(ms)} ${clock(ms)} ${zone(ms)}`;
}

/** How long ago, in words. */
export function ago(ms: number | null | undefined, now = Date.now()): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  const seconds = Math.max(0, Math.round((now - ms) / 1000));
  if (seconds < 5) return "just now";
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129_600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86_400)} days ago`;
}
