import { useState } from "preact/hooks";
import { post, seg } from "../../api/client";
import type { Choice, Device, FormatRequest } from "../../api/types";
import { Dialog } from "../../parts/Dialog";
import { Check, Confirm, Input, Select } from "../../parts/Field";
import { Notice } from "../../parts/Notice";
import { NO_OPENER, OpenerFields, openerOf } from "../../parts/OpenerFields";
import { act } from "../../state/action";
import { bytes, micros, number, quantity } from "../../text/quantity";

const SECTORS = [512, 1024, 2048, 4096];

interface Props {
  device: Device;
  capacity: string;
  predicted: Choice | null;
  onClose: () => void;
}

function foretold({ iops, p999_us, write_amplification }: Choice): string {
  if (iops === null || iops === undefined)
    return `write amplification ${quantity("ratio", write_amplification)}`;
  return `${number(iops)} IOPS in steady state, p99.9 ${micros(p999_us)}`;
}

/** The destructive step: nothing happens before the device's name was typed. */
export function FormatDialog({ device, capacity, predicted, onClose }: Props) {
  const [typed, setTyped] = useState("");
  const [sector, setSector] = useState(device.sector_bytes ?? 4096);
  const [label, setLabel] = useState(device.label ?? "");
  const [encrypt, setEncrypt] = useState(device.encryption !== undefined);
  const [draft, setDraft] = useState(NO_OPENER);
  const opener = encrypt ? openerOf(draft, true) : null;
  const format = () => {
    const body: FormatRequest = { confirm: typed, capacity, sector_bytes: sector, label };
    if (opener) body.encrypt = opener;
    else body.plain = true;
    return act(`${device.name} is formatted and attached again`, () =>
      post(`/devices/${seg(device.name)}/format`, body),
    );
  };
  return (
    <Dialog
      title={`Format ${device.name}`}
      onClose={onClose}
      submit={{
        label: "Destroy and format",
        busy: "Formatting…",
        danger: true,
        ready: typed === device.name && (!encrypt || opener !== null),
        work: format,
      }}
    >
      <Notice tone="critical">
        <strong>{bytes(device.mapped_bytes)} of data will be gone.</strong> There is no way back.
        {(device.clients?.length ?? 0) > 0 && (
          <p>{device.clients?.length} connected clients must disconnect first.</p>
        )}
      </Notice>
      <p>
        New capacity: <strong>{capacity}</strong>.{" "}
        {predicted ? `Predicted: ${foretold(predicted)}.` : "Nothing has been predicted for it."}
      </p>
      <div class="fields">
        <Select
          label="Sector size"
          value={sector}
          of={SECTORS}
          say={(size) => `${size} bytes`}
          onSet={setSector}
        />
        <Input label="Label" value={label} onSet={setLabel} />
      </div>
      {!device.emulation && (
        <Check value={encrypt} onSet={setEncrypt}>
          Encrypt what will be stored{device.encryption !== undefined && ", under a new key"}
        </Check>
      )}
      {encrypt && <OpenerFields label="Key" isNew draft={draft} onSet={setDraft} />}
      <Confirm name={device.name} value={typed} onSet={setTyped} />
    </Dialog>
  );
}
