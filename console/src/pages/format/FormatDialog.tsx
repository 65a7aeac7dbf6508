import { useState } from "preact/hooks";
import { post, seg } from "../../api/client";
import type { Choice, Device } from "../../api/types";
import { Dialog } from "../../parts/Dialog";
import { Confirm, Input, Select } from "../../parts/Field";
import { Notice } from "../../parts/Notice";
import { act } from "../../state/action";
import { bytes, micros, number } from "../../text/quantity";

const SECTORS = [512, 1024, 2048, 4096];

interface Props {
  device: Device;
  capacity: string;
  predicted: Choice | null;
  onClose: () => void;
}

/** The destructive step: nothing happens before the device's name was typed. */
export function FormatDialog({ device, capacity, predicted, onClose }: Props) {
  const [typed, setTyped] = useState("");
  const [sector, setSector] = useState(device.sector_bytes ?? 4096);
  const [label, setLabel] = useState(device.label ?? "");
  const format = () =>
    act(`${device.name} is formatted and attached again`, () =>
      post(`/devices/${seg(device.name)}/format`, { confirm: typed, capacity, sector_bytes: sector, label }),
    );
  return (
    <Dialog
      title={`Format ${device.name}`}
      onClose={onClose}
      submit={{
        label: "Destroy and format",
        busy: "Formatting…",
        danger: true,
        ready: typed === device.name,
        work: format,
      }}
    >
      <Notice tone="critical">
        <strong>{bytes(device.mapped_bytes)} of data will be gone.</strong> There is no way back.
        {(device.clients?.length ?? 0) > 0 && (
          <p>{device.clients?.length} connected clients lose their disk.</p>
        )}
      </Notice>
      <p>
        New capacity: <strong>{capacity}</strong>.{" "}
        {predicted
          ? `Predicted: ${number(predicted.iops)} IOPS in steady state, p99.9 ${micros(predicted.p999_us)}.`
          : "Nothing has been predicted for it."}
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
      <Confirm name={device.name} value={typed} onSet={setTyped} />
    </Dialog>
  );
}
