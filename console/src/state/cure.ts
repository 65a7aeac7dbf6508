import type { Alert } from "../api/types";
import { type DevicePage, href } from "../route";

/** On which page of the device what an alert tells of is mended, and what is done there; by the rule's name. */
const CURES: Readonly<Record<string, readonly [page: DevicePage, label: string]>> = {
  degraded: ["configure", "Rebuild"],
  unreadable: ["info", "Which sectors"],
  damaged: ["configure", "Scrub"],
  vanished: ["info", "Which file"],
  reserve: ["lifetime", "What is left"],
  "write-reduced": ["lifetime", "What is left"],
  "read-only": ["lifetime", "What is left"],
  temperature: ["live", "Temperature"],
  "temperature-critical": ["live", "Temperature"],
  "power-limited": ["configure", "Power override"],
  "store-full": ["info", "Where room is needed"],
  "store-low": ["info", "How much is left"],
  "store-filling": ["info", "How much is left"],
  "room-low": ["snapshots", "What they hold"],
  "room-filling": ["snapshots", "What they hold"],
  "slow-reads": ["live", "Latency"],
  "slow-writes": ["live", "Latency"],
  errors: ["live", "Figures"],
  failed: ["configure", "Attach it again"],
};

/** Where to go about an alert; nothing where no page has a cure. */
export function cure({
  rule,
  device,
}: Pick<Alert, "rule" | "device">): { label: string; href: string } | null {
  const known = CURES[rule];
  if (known === undefined || !device) return null;
  const [page, label] = known;
  return { label, href: href(page, device) };
}
