import type { AuditEntry } from "../api/types";

type Body = Record<string, unknown>;

/** What a request's body says, as far as the audit log kept it: secrets are not in it, and a long one is cut. */
function bodyOf(what: string): Body {
  try {
    const body: unknown = JSON.parse(what);
    return typeof body === "object" && body !== null && !Array.isArray(body) ? (body as Body) : {};
  } catch {
    return {};
  }
}

const text = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : "";

/** A word with what belongs to it, or nothing where that is not known. */
const and = (word: string, value: unknown): string => (text(value) ? ` ${word} ${text(value)}` : "");

function files(body: Body): string {
  const paths = Array.isArray(body.paths) ? body.paths.map(text) : text(body.path).split(",").filter(Boolean);
  return paths.length > 1 ? ` on ${paths.length} files` : and("on", paths[0]);
}

type Words = (names: readonly string[], body: Body) => string;

/** How each request reads, by its method and path; `*` stands for a name. The first that fits counts. */
const DEEDS: readonly (readonly [string, Words])[] = [
  ["POST /devices", (_, body) => `attached${and("device", body.name) || " a device"}${files(body)}`],
  ["POST /create", (_, body) => `created${and("device", body.label) || " a device"}${files(body)}`],
  ["POST /devices/*/detach", ([device], body) => `detached ${device}${body.force ? ", by force" : ""}`],
  ["POST /devices/*/format", ([device]) => `formatted ${device}`],
  ["POST /devices/*/erase", ([device], body) => `erased ${device}${and("at level", body.level)}`],
  [
    "POST /devices/*/scrub",
    ([device], body) => `${body.on === false ? "stopped" : "began"} a scrub of ${device}`,
  ],
  [
    "POST /devices/*/optimise",
    ([device], body) => (body.on === false ? `stopped optimising ${device}` : `began to optimise ${device}`),
  ],
  [
    "POST /devices/*/rebuild",
    ([device], body) => `began to rebuild file ${text(body.die)} of ${device}${and("onto", body.onto)}`,
  ],
  [
    "POST /devices/*/resize",
    ([device], body) =>
      `gave ${device} another size${and("of", body.size_bytes)}${and("with a raw capacity of", body.raw_bytes)}`,
  ],
  ["POST /devices/*/snapshots", ([device], body) => `made the snapshot ${text(body.name)} of ${device}`],
  ["PATCH /devices/*/snapshots/*", ([device, snapshot]) => `changed the snapshot ${snapshot} of ${device}`],
  ["DELETE /devices/*/snapshots/*", ([device, snapshot]) => `deleted the snapshot ${snapshot} of ${device}`],
  [
    "POST /devices/*/clones",
    ([device], body) =>
      `made the clone ${text(body.name)} of the snapshot ${text(body.snapshot)} of ${device}`,
  ],
  ["DELETE /devices/*/clones/*", ([device, clone]) => `deleted the clone ${clone} of ${device}`],
  [
    "POST /devices/*/clones/*/promote",
    ([device, clone]) => `had ${device} hold what its clone ${clone} does`,
  ],
  [
    "POST /devices/*/snapshots/*/roll-back",
    ([device, snapshot]) => `rolled ${device} back to the snapshot ${snapshot}`,
  ],
  [
    "PUT /devices/*/snapshot-schedule",
    ([device], body) => {
      const kept = Object.entries(body).filter(([, count]) => Number(count) > 0);
      const words = kept.map(([period, count]) => `${text(count)} ${period}`).join(", ");
      return words
        ? `had ${words} snapshots of ${device} kept`
        : `ended the schedule of snapshots of ${device}`;
    },
  ],
  [
    "POST /arrays",
    (_, body) =>
      `made${and("the array", body.name) || " an array"}${and("of", (Array.isArray(body.members) ? body.members : []).map(text).join(", "))}`,
  ],
  ["POST /arrays/*/assemble", ([array]) => `put the array ${array} together`],
  [
    "POST /arrays/*/add",
    ([array], body) =>
      `added${and("the device", body.device) || " a device"} to the array ${array} as one more member`,
  ],
  ["POST /arrays/*/delete", ([array]) => `took the array ${array} apart`],
  [
    "POST /arrays/*/replace",
    ([array], body) =>
      `gave the array ${array}${and("the member", body.with)}${and("in the place of", body.member)}`,
  ],
  [
    "POST /caches",
    (_, body) =>
      `made${and("the cached volume", body.name) || " a cached volume"}${and("of", body.path ?? body.device ?? body.address)}${and("on", body.cache)}`,
  ],
  ["POST /caches/*/open", ([volume]) => `opened the cached volume ${volume}`],
  [
    "POST /caches/*/settings",
    ([volume], body) => {
      const limit = body.limit_bytes === 0 ? " without a limit" : and("limit", body.limit_bytes);
      return `set the cached volume ${volume} to${and("share", body.share)}${limit}`;
    },
  ],
  ["POST /caches/*/flush", ([volume]) => `had everything of ${volume} written behind its cache`],
  [
    "POST /caches/*/delete",
    ([volume], body) =>
      `deleted the cached volume ${volume}${body.discard ? " with what was not behind" : ""}`,
  ],
  [
    "POST /devices/*/migrate",
    ([device], body) => `began to move ${device}${and("to", body.path ?? body.target)}`,
  ],
  ["DELETE /devices/*/migrate", ([device]) => `cancelled the move of ${device}`],
  ["POST /devices/*/record", ([device]) => `began to record ${device}`],
  ["POST /devices/*/record/stop", ([device]) => `stopped recording ${device}`],
  ["POST /devices/*/drills", ([device], body) => `put the fault ${text(body.drill)} on ${device}`],
  ["DELETE /devices/*/drills/*", ([device, drill]) => `undid the fault ${drill} on ${device}`],
  ["POST /devices/*/power-on", ([device]) => `switched ${device} on`],
  ["PUT /devices/*/beacon", ([device], body) => `${body.on ? "lit" : "darkened"} the beacon of ${device}`],
  [
    "PATCH /devices/*/config",
    ([device], body) =>
      `set ${
        Object.entries(body)
          .map(([name, value]) => `${name} to ${text(value)}`)
          .join(", ") || "settings"
      } of ${device}`,
  ],
  ["* /devices/*/keys", ([, device]) => `changed the keys of ${device}`],
  ["* /devices/*/keys/remove", ([, device]) => `removed a key of ${device}`],
  ["POST /devices/*/demo", ([device]) => `put the demo load on ${device}`],
  ["DELETE /devices/*/demo", ([device]) => `took the demo load off ${device}`],
  ["POST /demo", () => "started the demo"],
  ["DELETE /demo", () => "stopped the demo"],
  [
    "POST /alerts/*/acknowledge",
    ([alert], body) => `acknowledged alert ${alert}${and("with the note", body.note)}`,
  ],
  [
    "PUT /alert-rules/*",
    ([rule], body) => `${body.enabled === false ? "switched off" : "set"} the alert rule ${rule}`,
  ],
  ["DELETE /alert-rules/*", ([rule]) => `deleted the alert rule ${rule}`],
  ["PUT /notifications", () => "changed who is told of alerts"],
  ["POST /notifications/test", () => "sent a test of the notifications"],
  ["POST /accounts", (_, body) => `created the account ${text(body.name)}${and("as", body.role)}`],
  ["DELETE /accounts/*", ([name]) => `deleted the account ${name}`],
  ["POST /accounts/*/keys", ([name]) => `made an access key of ${name}`],
  ["DELETE /accounts/*/keys/*", ([name]) => `deleted an access key of ${name}`],
  ["* /accounts/*", ([, name]) => `changed the account ${name}`],
  [
    "POST /fleet/moves",
    (_, body) =>
      `began to move ${text(body.device)}${and("from", body.from)}${and("to", body.to)}${body.force ? ", by force" : ""}`,
  ],
  [
    "POST /fleet/moves/*",
    (_, body) =>
      `${body.state === "moved" ? "moved" : "could not move"} ${text(body.device)}${and("from", body.from)}${and("to", body.to)}`,
  ],
  ["POST /objects/look", (_, body) => `looked who has the device${and("at", body.address)}`],
  ["POST /hosts", (_, body) => `added the host ${text(body.name)}${and("at", body.address)}`],
  ["DELETE /hosts/*", ([name]) => `removed the host ${name}`],
  ["POST /predictions", (_, body) => `asked for a prediction${and("of", body.device)}`],
  ["POST /lab/runs", (_, body) => `began a lab run${and("of", body.protocol)}`],
  ["DELETE /lab/runs/*", ([name]) => `deleted the lab run ${name}`],
  ["DELETE /jobs/*", ([job]) => `stopped job ${job}`],
  ["POST /session", () => "signed in"],
  ["DELETE /session", () => "signed out"],
  ["POST /shutdown", () => "stopped the service"],
];

/** The names in a request that a pattern leaves open, or null where it does not fit. */
function namesIn(pattern: string, request: string): string[] | null {
  const [wanted, given] = [pattern, request].map((one) => one.split(/[ /]+/));
  if (wanted === undefined || given === undefined || wanted.length !== given.length) return null;
  const names: string[] = [];
  for (const [position, word] of given.entries()) {
    if (wanted[position] === "*") names.push(decode(word));
    else if (wanted[position] !== word) return null;
  }
  return names;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What somebody did, in words. A request to another host says to which; one that nobody put into words is shown as it was. */
export function deed({ method, path, what }: Pick<AuditEntry, "method" | "path" | "what">): string {
  const bare = path.replace(/^\/api\/v\d+/, "").replace(/\?.*$/, "");
  const [, host, rest] = /^\/hosts\/([^/]+)(\/.+)$/.exec(bare) ?? [];
  if (host !== undefined && rest !== undefined)
    return `${deed({ method, path: rest, what })} (on ${decode(host)})`;
  for (const [pattern, words] of DEEDS) {
    const names = namesIn(pattern, `${method} ${bare}`);
    if (names) return words(names, bodyOf(what ?? ""));
  }
  return `${method} ${bare}`;
}
