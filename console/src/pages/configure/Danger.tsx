import { useState } from "preact/hooks";
import { post, seg } from "../../api/client";
import type { Demo, Device } from "../../api/types";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Confirm } from "../../parts/Field";
import { Notice } from "../../parts/Notice";
import { act } from "../../state/action";
import { setLoad } from "../../state/demo";
import { device as find, refresh } from "../../state/fleet";
import { useResource } from "../../state/resource";
import { bytes } from "../../text/quantity";

const connected = (device: Device | null) => device?.clients?.length ?? 0;

/** Detaching: refused while clients are connected, unless they are to be disconnected. */
export function Detach({ device }: { device: Device }) {
  const [asking, setAsking] = useState(false);
  const clients = connected(device);
  const detach = (force: boolean) =>
    act(`${device.name} is detached`, () => post(`/devices/${seg(device.name)}/detach`, { force }));
  const pressed = async () => {
    // Who is connected is known from some seconds ago, and it decides whether there is something to ask.
    await refresh();
    if (connected(find(device.name)) > 0) setAsking(true);
    else await detach(false);
  };
  return (
    <>
      <Button needs="operator" onClick={() => void pressed()}>
        Detach
      </Button>
      {asking && (
        <Dialog
          title={`Detach ${device.name}`}
          onClose={() => setAsking(false)}
          submit={{ label: "Disconnect and detach", danger: true, work: () => detach(true) }}
        >
          <Notice tone="warning">
            {clients} {clients === 1 ? "client is" : "clients are"} connected and would lose this disk. What
            they asked for is finished first.
          </Notice>
        </Dialog>
      )}
    </>
  );
}

/** The demo's load on a device of one's own: it overwrites, so the name is typed. */
export function Load({ device }: { device: Device }) {
  const { value, again } = useResource<Demo>(`/devices/${seg(device.name)}/demo`, 3000);
  const [asking, setAsking] = useState(false);
  const [typed, setTyped] = useState("");
  const set = async (on: boolean) => {
    const done = await setLoad(device.name, on);
    again();
    // Somebody else may have started one in the meantime: the question is over then too.
    if (!on) setAsking(false);
    return done;
  };
  if (value?.running) {
    return (
      <Button needs="operator" onClick={() => set(false)}>
        Stop the demo load
      </Button>
    );
  }
  return (
    <>
      <Button needs="operator" onClick={() => setAsking(true)}>
        Start a demo load…
      </Button>
      {asking && (
        <Dialog
          title={`A load on ${device.name}`}
          onClose={() => setAsking(false)}
          submit={{
            label: "Overwrite and start",
            danger: true,
            ready: typed === device.name,
            work: () => set(true),
          }}
        >
          <Notice tone="critical">
            A moderate mixed load reads and <strong>overwrites</strong> the whole device.{" "}
            {bytes(device.mapped_bytes)} of data would be lost.
          </Notice>
          <Confirm name={device.name} value={typed} onSet={setTyped} />
        </Dialog>
      )}
    </>
  );
}
