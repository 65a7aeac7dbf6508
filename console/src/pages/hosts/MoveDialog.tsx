import { useState } from "preact/hooks";
import { post } from "../../api/client";
import type { FleetDevice } from "../../api/types";
import { Dialog } from "../../parts/Dialog";
import { Check, Input, Select } from "../../parts/Field";
import { act } from "../../state/action";

interface Props {
  of: FleetDevice;
  /** The hosts to which it can go. */
  hosts: readonly string[];
  onClose: () => void;
}

/** Moves a device on objects to another host. */
export function MoveDialog({ of, hosts, onClose }: Props) {
  const [to, setTo] = useState(hosts[0] ?? "");
  const [path, setPath] = useState("");
  const [keyFile, setKeyFile] = useState("");
  const [force, setForce] = useState(false);
  const move = () => {
    const body: Record<string, unknown> = { device: of.name, from: of.host, to, force };
    if (path.trim()) body.path = path.trim();
    if (keyFile.trim()) body.key_file = keyFile.trim();
    return act(`${of.name} is on its way to ${to}`, () => post("/fleet/moves", body, { at: null }));
  };
  return (
    <Dialog
      title={`Move ${of.name}`}
      onClose={onClose}
      submit={{ label: "Move", busy: "Looking", ready: to !== "", work: move }}
    >
      <p>
        {of.host} detaches {of.name} with everything in its object store, and the other host attaches it with
        a new journal. Nothing is copied. If the other host refuses it, {of.host} attaches it again.
      </p>
      <div class="fields">
        <Select label="To the host" value={to} of={hosts} onSet={setTo} />
        <Input
          label="Its new journal there"
          hint="A path, or a name in the service's own directory. By default named after the device."
          spellcheck={false}
          value={path}
          onSet={setPath}
        />
        <Input
          label="Key file, where the device is encrypted"
          hint="A path that is good on both hosts."
          spellcheck={false}
          value={keyFile}
          onSet={setKeyFile}
        />
      </div>
      <Check value={force} onSet={setForce}>
        Close the connections of its clients
      </Check>
    </Dialog>
  );
}
