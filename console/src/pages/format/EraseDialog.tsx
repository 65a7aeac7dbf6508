import { useState } from "preact/hooks";
import { post, seg } from "../../api/client";
import type { Device, EraseLevel, EraseRequest, Job } from "../../api/types";
import { Dialog } from "../../parts/Dialog";
import { Check, Confirm } from "../../parts/Field";
import { Notice } from "../../parts/Notice";
import { NO_OPENER, OpenerFields, openerOf } from "../../parts/OpenerFields";
import { act } from "../../state/action";
import { noteJob } from "../../state/fleet";
import { bytes } from "../../text/quantity";

interface Option {
  level: EraseLevel;
  title: string;
  what: string;
}

/** The levels, in the words of NIST SP 800-88. */
const LEVELS: readonly Option[] = [
  {
    level: "clear",
    title: "Clear",
    what: "everything that was ever stored is overwritten with zeros, and read back",
  },
  {
    level: "purge",
    title: "Purge",
    what: "as clear; a data key is destroyed first where there is one, and the space is given back",
  },
  {
    level: "crypto",
    title: "Crypto",
    what: "the data key is destroyed, at once; what is stored stays, and nothing opens it",
  },
];

/** The destructive step: nothing happens before the device's name was typed. What is begun is a job. */
export function EraseDialog({ device, onClose }: { device: Device; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [level, setLevel] = useState<EraseLevel>("clear");
  const [encrypt, setEncrypt] = useState(false);
  const [draft, setDraft] = useState(NO_OPENER);
  const opener = encrypt ? openerOf(draft, true) : null;
  const erase = () =>
    act(`${device.name} is being erased`, async () => {
      const body: EraseRequest = { confirm: typed, level };
      if (opener) body.encrypt = opener;
      noteJob(await post<Job>(`/devices/${seg(device.name)}/erase`, body));
    });
  const levels = LEVELS.filter((option) => option.level !== "crypto" || device.encryption);
  return (
    <Dialog
      title={`Erase ${device.name}`}
      onClose={onClose}
      submit={{
        label: "Destroy and erase",
        danger: true,
        ready: typed === device.name && (!encrypt || opener !== null),
        work: erase,
      }}
    >
      <Notice tone="critical">
        <strong>{bytes(device.mapped_bytes)} of data will be gone for good,</strong> and so will what was
        overwritten or trimmed before. An erase that is cut leaves no device until it is run again.
      </Notice>
      <div class="options" role="radiogroup" aria-label="Level">
        {levels.map((option) => (
          <label key={option.level} class={`option ${level === option.level ? "chosen" : ""}`}>
            <input
              type="radio"
              name="level"
              checked={level === option.level}
              onChange={() => setLevel(option.level)}
            />
            <span>
              <strong>{option.title}</strong>
              <br />
              <span class="muted small">{option.what}</span>
            </span>
          </label>
        ))}
      </div>
      {!device.emulation && (
        <Check value={encrypt} onSet={setEncrypt}>
          Encrypt the empty device that is left
        </Check>
      )}
      {encrypt && <OpenerFields label="Key" isNew draft={draft} onSet={setDraft} />}
      <Confirm name={device.name} value={typed} onSet={setTyped} />
    </Dialog>
  );
}
