import { useState } from "preact/hooks";
import { post } from "../api/client";
import { act } from "../state/action";
import { Dialog } from "./Dialog";
import { Check, Input } from "./Field";

/** Asks for what is to be attached. */
export function AttachDialog({ onClose }: { onClose: () => void }) {
  const [path, setPath] = useState("");
  const [name, setName] = useState("");
  const [readOnly, setReadOnly] = useState(false);
  const [keep, setKeep] = useState(true);
  const [degraded, setDegraded] = useState(false);
  const [newIdentity, setNewIdentity] = useState(false);
  const [passphrase, setPassphrase] = useState("");
  const [keyFile, setKeyFile] = useState("");

  const attach = () => {
    const body: Record<string, unknown> = {
      path: path.trim(),
      read_only: readOnly,
      remember: keep,
      degraded,
      new_identity: newIdentity,
    };
    if (name.trim()) body.name = name.trim();
    if (passphrase) body.passphrase = passphrase;
    if (keyFile.trim()) body.key_file = keyFile.trim();
    return act(`Attached ${name.trim() || path.trim()}`, () => post("/devices", body));
  };

  return (
    <Dialog
      title="Attach a device"
      onClose={onClose}
      submit={{
        label: "Attach",
        busy: "Attaching…",
        ready: path.trim() !== "",
        work: attach,
      }}
    >
      <Input
        label="Device file on the service's machine"
        hint="An absolute path; several with commas for a device on several files; or memory:1GiB."
        required
        placeholder="/srv/db.vsl"
        spellcheck={false}
        value={path}
        onSet={setPath}
      />
      <Input
        label="Name (by default after the file)"
        spellcheck={false}
        blame={/^the name /}
        value={name}
        onSet={setName}
      />
      <div class="stack">
        <Check value={keep} onSet={setKeep}>
          Attach it again when the service starts
        </Check>
        <Check value={readOnly} onSet={setReadOnly}>
          Read-only
        </Check>
      </div>
      <details>
        <summary>Encrypted, with files missing, or a copy</summary>
        <div class="stack">
          <Input
            label="Passphrase"
            type="password"
            autocomplete="off"
            blame={/passphrase|is encrypted/}
            value={passphrase}
            onSet={setPassphrase}
          />
          <Input
            label="or key file on the service's machine"
            spellcheck={false}
            blame={/the key file/}
            value={keyFile}
            onSet={setKeyFile}
          />
          <Check value={degraded} onSet={setDegraded}>
            Go on without files that are missing
          </Check>
          <Check value={newIdentity} onSet={setNewIdentity}>
            It is a copy: make it a device of its own, beside its original
          </Check>
        </div>
      </details>
    </Dialog>
  );
}
