import type { Opener } from "../api/types";
import { Input, Select } from "./Field";

/** What was filled in of something that opens an encrypted device. */
export interface OpenerDraft {
  kind: "passphrase" | "key file";
  passphrase: string;
  again: string;
  keyFile: string;
}

export const NO_OPENER: OpenerDraft = { kind: "passphrase", passphrase: "", again: "", keyFile: "" };

/** The draft as the service takes it; null where it will not do yet. */
export function openerOf(draft: OpenerDraft, isNew: boolean): Opener | null {
  if (draft.kind === "key file") {
    const file = draft.keyFile.trim();
    return file.startsWith("/") ? { key_file: file } : null;
  }
  if (draft.passphrase === "" || (isNew && draft.passphrase !== draft.again)) return null;
  return { passphrase: draft.passphrase };
}

interface Props {
  /** What it is, such as "New key". */
  label: string;
  draft: OpenerDraft;
  onSet: (draft: OpenerDraft) => void;
  /** A new passphrase is typed twice: one with a slip of the finger opens nothing. */
  isNew?: boolean;
}

/** Asks for a passphrase, or for a key file on the service's machine. */
export function OpenerFields({ label, draft, onSet, isNew = false }: Props) {
  const set = (part: Partial<OpenerDraft>) => onSet({ ...draft, ...part });
  const differ = isNew && draft.again !== "" && draft.again !== draft.passphrase;
  return (
    <fieldset class="stack">
      <legend>{label}</legend>
      <Select
        label="Opened by"
        value={draft.kind}
        of={["passphrase", "key file"] as const}
        onSet={(kind) => set({ kind })}
      />
      {draft.kind === "passphrase" ? (
        <div class="fields">
          <Input
            label="Passphrase"
            type="password"
            autocomplete="off"
            blame={isNew ? undefined : /passphrase/}
            value={draft.passphrase}
            onSet={(passphrase) => set({ passphrase })}
          />
          {isNew && (
            <Input
              label="The same again"
              type="password"
              autocomplete="off"
              aria-invalid={differ}
              hint={differ ? "The two differ." : undefined}
              value={draft.again}
              onSet={(again) => set({ again })}
            />
          )}
        </div>
      ) : (
        <Input
          label="Key file on the service's machine"
          hint="An absolute path to 32 random bytes or more."
          placeholder="/etc/openvsl/db.key"
          spellcheck={false}
          blame={isNew ? undefined : /the key file/}
          value={draft.keyFile}
          onSet={(keyFile) => set({ keyFile })}
        />
      )}
      {isNew && (
        <p class="muted small">
          Without it the data cannot be read by anybody, ever.{" "}
          {draft.kind === "passphrase"
            ? "A passphrase is kept nowhere, so the service cannot attach the device by itself when it starts."
            : "The service reads the file at each attach, also when it starts."}
        </p>
      )}
    </fieldset>
  );
}
