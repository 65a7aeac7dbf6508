import type { CreateRequest } from "../../api/types";
import { type OpenerDraft, openerOf } from "../../parts/OpenerFields";
import { parseSize } from "../../text/size";

/** What was filled in of a new device. */
export interface Draft {
  /** With commas in between. */
  paths: string;
  kind: "size" | "profile" | "emulate";
  size: string;
  card: string;
  scale: string;
  parity: number;
  sector: number;
  capacity: string;
  label: string;
  drills: boolean;
  encrypt: boolean;
  opener: OpenerDraft;
  attach: boolean;
  remember: boolean;
}

/** Whether a passphrase opens it: that is kept nowhere, so the service cannot attach the device by itself. */
export function isTyped(draft: Draft): boolean {
  return draft.encrypt && draft.kind !== "emulate" && draft.opener.kind === "passphrase";
}

/** The draft as the service takes it; null where it will not do yet. */
export function requestOf(draft: Draft): CreateRequest | null {
  const paths = draft.paths
    .split(",")
    .map((path) => path.trim())
    .filter((path) => path !== "");
  if (paths.length === 0 || paths.some((path) => !path.startsWith("/"))) return null;
  const request: CreateRequest = {
    paths,
    sector_bytes: draft.sector,
    capacity: draft.capacity,
    attach: draft.attach,
    drills: draft.drills,
  };
  if (draft.kind === "size") {
    const size = parseSize(draft.size);
    if (size === null) return null;
    request.size_bytes = size;
    if (paths.length > 1) request.parity = draft.parity;
  } else {
    if (draft.card === "") return null;
    request[draft.kind] = draft.card;
  }
  if (draft.kind === "emulate") {
    const scale = Number(draft.scale);
    if (!Number.isInteger(scale) || scale < 1 || scale > 65536) return null;
    request.scale = scale;
  }
  if (draft.label.trim() !== "") request.label = draft.label.trim();
  if (draft.encrypt && draft.kind !== "emulate") {
    const opener = openerOf(draft.opener, true);
    if (opener === null) return null;
    request.encrypt = opener;
  }
  request.remember = draft.attach && draft.remember && !isTyped(draft);
  return request;
}
