import { useState } from "preact/hooks";
import { post } from "../api/client";
import { act } from "../state/action";
import { Dialog } from "./Dialog";

/** Asks for what is to be attached. */
export function AttachDialog({ onClose }: { onClose: () => void }) {
  const [path, setPath] = useState("");
  const [name, setName] = useState("");
  const [readOnly, setReadOnly] = useState(false);
  const [keep, setKeep] = useState(true);
  const [degraded, setDegraded] = useState(false);
  const [passphrase, setPassphrase] = useState("");
  const [keyFile, setKeyFile] = useState("");
  const [busy, setBusy] = useState(false);

  const submit = async () => {
    const body: Record<string, unknown> = {
      path: path.trim(),
      read_only: readOnly,
      remember: keep,
      degraded,
    };
    if (name.trim()) body.name = name.trim();
    if (passphrase) body.passphrase = passphrase;
    if (keyFile.trim()) body.key_file = keyFile.trim();
    setBusy(true);
    const attached = await act(`Attached ${name.trim() || path.trim()}`, () => post("/devices", body));
    setBusy(false);
    if (attached) onClose();
  };

  return (
    <Dialog
      title="Attach a device"
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <button type="submit" class="primary" disabled={busy || path.trim() === ""}>
          {busy ? "Attaching…" : "Attach"}
        </button>
      }
    >
      <div class="field">
        <label for="attach-path">Device file on the service's machine</label>
        <input
          id="attach-path"
          type="text"
          required
          placeholder="/srv/db.vsl"
          spellcheck={false}
          value={path}
          onInput={(event) => setPath(event.currentTarget.value)}
        />
        <span class="hint">
          An absolute path; several with commas for a device on several files; or memory:1GiB.
        </span>
      </div>
      <div class="field">
        <label for="attach-name">Name (by default after the file)</label>
        <input
          id="attach-name"
          type="text"
          spellcheck={false}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </div>
      <div class="stack">
        <label class="check">
          <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.currentTarget.checked)} />
          Attach it again when the service starts
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={readOnly}
            onChange={(event) => setReadOnly(event.currentTarget.checked)}
          />
          Read-only
        </label>
      </div>
      <details>
        <summary>Encrypted, or with files missing</summary>
        <div class="stack">
          <div class="field">
            <label for="attach-passphrase">Passphrase</label>
            <input
              id="attach-passphrase"
              type="password"
              autocomplete="off"
              value={passphrase}
              onInput={(event) => setPassphrase(event.currentTarget.value)}
            />
          </div>
          <div class="field">
            <label for="attach-key">or key file on the service's machine</label>
            <input
              id="attach-key"
              type="text"
              spellcheck={false}
              value={keyFile}
              onInput={(event) => setKeyFile(event.currentTarget.value)}
            />
          </div>
          <label class="check">
            <input
              type="checkbox"
              checked={degraded}
              onChange={(event) => setDegraded(event.currentTarget.checked)}
            />
            Go on without files that are missing
          </label>
        </div>
      </details>
    </Dialog>
  );
}
