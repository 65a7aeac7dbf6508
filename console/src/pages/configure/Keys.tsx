import { useState } from "preact/hooks";
import { post, put, seg } from "../../api/client";
import type { Device, KeyRequest, RemoveKeyRequest } from "../../api/types";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Select } from "../../parts/Field";
import { Notice } from "../../parts/Notice";
import { NO_OPENER, OpenerFields, openerOf } from "../../parts/OpenerFields";
import { act } from "../../state/action";

type What = "add" | "change" | "remove";

const TITLES: Record<What, string> = { add: "Add a key", change: "Change a key", remove: "Remove a key" };

/** What opens an encrypted device, and other keys for it. It goes on serving meanwhile. */
export function Keys({ device }: { device: Device }) {
  const [asking, setAsking] = useState<What | null>(null);
  const slots = device.key_slots ?? [];
  if (!device.encryption) {
    return (
      <p class="muted">
        Not encrypted. A device is encrypted when it is made, formatted or erased; it cannot be turned on
        later.
      </p>
    );
  }
  return (
    <div class="stack">
      <dl class="pairs">
        <dt>Cipher</dt>
        <dd>{device.encryption}</dd>
        <dt>Opened by</dt>
        <dd>
          <ul>
            {slots.map((slot) => (
              <li key={slot}>key slot {slot}</li>
            ))}
          </ul>
        </dd>
      </dl>
      <div class="row">
        <Button needs="administrator" disabled={slots.length >= 4} onClick={() => setAsking("add")}>
          Add a key…
        </Button>
        <Button needs="administrator" onClick={() => setAsking("change")}>
          Change a key…
        </Button>
        <Button needs="administrator" disabled={slots.length < 2} onClick={() => setAsking("remove")}>
          Remove a key…
        </Button>
      </div>
      {asking && <KeyDialog device={device} what={asking} onClose={() => setAsking(null)} />}
    </div>
  );
}

function KeyDialog({ device, what, onClose }: { device: Device; what: What; onClose: () => void }) {
  const slots = device.key_slots ?? [];
  const onlyFiles = slots.length > 0 && slots.every((slot) => slot.endsWith("key file"));
  const [withDraft, setWith] = useState({ ...NO_OPENER, kind: onlyFiles ? "key file" : NO_OPENER.kind });
  const [newDraft, setNew] = useState(NO_OPENER);
  const [slot, setSlot] = useState(slots[0] ?? "");
  const opener = openerOf(withDraft, false);
  const fresh = openerOf(newDraft, true);
  const path = `/devices/${seg(device.name)}/keys`;
  const work = () => {
    if (opener === null) return Promise.resolve(false);
    if (what === "remove") {
      const body: RemoveKeyRequest = { with: opener, slot: Number.parseInt(slot, 10) };
      return act(`Key slot ${body.slot} of ${device.name} is empty`, () => post(`${path}/remove`, body));
    }
    if (fresh === null) return Promise.resolve(false);
    const body: KeyRequest = { with: opener, new: fresh };
    return what === "add"
      ? act(`${device.name} has another key`, () => post(path, body))
      : act(`The key of ${device.name} is changed`, () => put(path, body));
  };
  return (
    <Dialog
      title={`${TITLES[what]} of ${device.name}`}
      onClose={onClose}
      submit={{
        label: { add: "Add", change: "Change", remove: "Remove" }[what],
        busy: "Trying the key…",
        danger: what === "remove",
        ready: opener !== null && (what === "remove" || fresh !== null),
        work,
      }}
    >
      <OpenerFields
        label={what === "change" ? "The key that goes" : "A key that opens it now"}
        draft={withDraft}
        onSet={setWith}
      />
      {what === "remove" ? (
        <>
          <Select label="Key slot to empty" value={slot} of={slots} onSet={setSlot} />
          <Notice tone="warning">Whoever has only that key cannot open the device any more.</Notice>
        </>
      ) : (
        <OpenerFields label="New key" isNew draft={newDraft} onSet={setNew} />
      )}
    </Dialog>
  );
}
