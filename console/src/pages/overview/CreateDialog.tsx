import { useState } from "preact/hooks";
import { post } from "../../api/client";
import type { Named } from "../../api/types";
import { Dialog } from "../../parts/Dialog";
import { Check, Input, Select } from "../../parts/Field";
import { NO_OPENER, OpenerFields } from "../../parts/OpenerFields";
import { act } from "../../state/action";
import { useResource } from "../../state/resource";
import { bytes } from "../../text/quantity";
import { parseSize } from "../../text/size";
import { flash, namesOf } from "../lab/lists";
import { type Draft, isTyped, requestOf } from "./create";

const SECTORS = [512, 1024, 2048, 4096];
const CAPACITIES = ["advertised", "maximum", "high-performance", "improved-write", "maximum-write"];
const KINDS = ["size", "profile", "emulate"] as const;
const SAID = {
  size: "of any size",
  profile: "laid out as a card's data sheet says",
  emulate: "behaving as a card did",
};

/** Asks for what is to be made. It destroys nothing: where something exists the service says so. */
export function CreateDialog({ onClose }: { onClose: () => void }) {
  const profiles = useResource<Named[]>("/lab/profiles");
  const cards = namesOf(flash(profiles.value));
  const [draft, setDraft] = useState<Draft>({
    paths: "",
    kind: "size",
    size: "8GiB",
    card: "",
    scale: "64",
    parity: 1,
    sector: 4096,
    capacity: "advertised",
    label: "",
    drills: false,
    encrypt: false,
    opener: NO_OPENER,
    attach: true,
    remember: true,
  });
  const set = (part: Partial<Draft>) => setDraft((before) => ({ ...before, ...part }));
  const filled = { ...draft, card: draft.card || cards[0] || "" };
  const request = requestOf(filled);
  const several = draft.paths.includes(",");
  const size = parseSize(draft.size);
  return (
    <Dialog
      title="Create a device"
      onClose={onClose}
      submit={{
        label: "Create",
        busy: "Creating…",
        ready: request !== null,
        work: () => act(`Made ${draft.paths.trim()}`, () => post("/create", request)),
      }}
    >
      <Input
        label="New file on the service's machine"
        hint="An absolute path, or a blank block device; several with commas for a device that lies on all of them. What exists is not overwritten."
        required
        placeholder="/srv/db.vsl"
        spellcheck={false}
        value={draft.paths}
        onSet={(paths) => set({ paths })}
      />
      <div class="fields">
        <Select
          label="A device"
          value={draft.kind}
          of={KINDS}
          say={(kind) => SAID[kind]}
          onSet={(kind) => set({ kind })}
        />
        {draft.kind === "size" ? (
          <Input
            label="Capacity"
            hint={size === null ? "A size such as 8GiB or 500GB." : `${bytes(size)}; the file is sparse`}
            aria-invalid={size === null}
            spellcheck={false}
            blame={/^(capacity|raw size): /}
            value={draft.size}
            onSet={(size) => set({ size })}
          />
        ) : (
          <Select label="Card" value={filled.card} of={cards} onSet={(card) => set({ card })} />
        )}
        {draft.kind === "emulate" && (
          <Input
            label="So many times smaller"
            type="number"
            min={1}
            max={65536}
            value={draft.scale}
            onSet={(scale) => set({ scale })}
          />
        )}
        {draft.kind === "size" && several && (
          <Select
            label="Files that may be lost"
            value={draft.parity}
            of={[0, 1, 2]}
            onSet={(parity) => set({ parity })}
          />
        )}
      </div>
      <div class="stack">
        <Check value={draft.attach} onSet={(attach) => set({ attach })}>
          Attach it
        </Check>
        {draft.attach && !isTyped(draft) && (
          <Check value={draft.remember} onSet={(remember) => set({ remember })}>
            Attach it again when the service starts
          </Check>
        )}
        {draft.kind !== "emulate" && (
          <Check value={draft.encrypt} onSet={(encrypt) => set({ encrypt })}>
            Encrypt what is stored
          </Check>
        )}
      </div>
      {draft.encrypt && draft.kind !== "emulate" && (
        <OpenerFields label="Key" isNew draft={draft.opener} onSet={(opener) => set({ opener })} />
      )}
      <details>
        <summary>Format, label and drills</summary>
        <div class="stack">
          <div class="fields">
            <Select
              label="Sector size"
              value={draft.sector}
              of={SECTORS}
              say={(size) => `${size} bytes`}
              onSet={(sector) => set({ sector })}
            />
            <Select
              label="Format"
              value={draft.capacity}
              of={CAPACITIES}
              onSet={(capacity) => set({ capacity })}
            />
          </div>
          <Input
            label="Label (by default after the file)"
            blame={/^label: /}
            value={draft.label}
            onSet={(label) => set({ label })}
          />
          <Check value={draft.drills} onSet={(drills) => set({ drills })}>
            Faults may be put on it by command
          </Check>
        </div>
      </details>
    </Dialog>
  );
}
