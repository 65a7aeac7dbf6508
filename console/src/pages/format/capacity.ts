import type { Device } from "../../api/types";

/** The capacities that the card's own tools offered, as shares of the advertised one. */
export interface Option {
  capacity: string;
  title: string;
  share: number;
  what: string;
}

export const OPTIONS: readonly Option[] = [
  {
    capacity: "maximum",
    title: "Maximum capacity",
    share: 110,
    what: "the most room; the groomer moves the most for each write",
  },
  { capacity: "advertised", title: "Advertised capacity", share: 100, what: "as the device was sold" },
  {
    capacity: "high-performance",
    title: "High performance",
    share: 80,
    what: "a fifth less room, as the reviewed card was formatted for its second run",
  },
  {
    capacity: "improved-write",
    title: "Improved writes",
    share: 70,
    what: "more room for the groomer: it moves less for each write",
  },
  {
    capacity: "maximum-write",
    title: "Maximum writes",
    share: 50,
    what: "half the room: the groomer moves the least for each write",
  },
];

/** Shares of the advertised capacity that the slider offers. The service judges what the media really allow. */
export function bounds(device: Device): { least: number; most: number } {
  const raw = device.raw_bytes ?? 0;
  const advertised = device.advertised_bytes ?? 0;
  const most = advertised > 0 ? Math.floor((raw / advertised) * 96) : 110;
  return { least: 10, most: Math.max(50, Math.min(most, 125)) };
}

/** The share of the advertised capacity that the maximum one comes to: 110 %, or as much as the media allow. */
export function maximumShare(device: Device): number {
  const raw = device.raw_bytes ?? 0;
  const advertised = device.advertised_bytes ?? 0;
  return advertised > 0 ? Math.min(110, (raw / advertised) * 96) : 110;
}

/** What the slider's place is called where it has a name, otherwise its share. */
export function capacityAt(share: number): string {
  return (
    OPTIONS.find((option) => option.share === share && option.capacity !== "maximum")?.capacity ?? `${share}%`
  );
}

/** The share of the advertised capacity that the device is formatted to now. */
export function presentShare(device: Device): number | null {
  if (!device.bytes || !device.advertised_bytes) return null;
  return Math.round((device.bytes / device.advertised_bytes) * 100);
}
