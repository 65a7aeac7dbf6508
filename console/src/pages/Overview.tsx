import { useState } from "preact/hooks";
import { host, post } from "../api/client";
import type { Alert, Device } from "../api/types";
import { AttachDialog } from "../parts/AttachDialog";
import { Button } from "../parts/Button";
import { Cure } from "../parts/Cure";
import { DeviceTree } from "../parts/DeviceTree";
import { Input } from "../parts/Field";
import { Figures } from "../parts/Figures";
import { Lights } from "../parts/Lights";
import { Empty, Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { State } from "../parts/State";
import { href } from "../route";
import { act } from "../state/action";
import { concerns } from "../state/attention";
import { DEMO, startDemo, stopDemo } from "../state/demo";
import { alerts, devices, health, loaded, version } from "../state/fleet";
import { may } from "../state/link";
import { SERVICE, value } from "../state/telemetry";
import { moment } from "../text/moment";
import { bytes, count, percent, short } from "../text/quantity";
import { CreateDialog } from "./overview/CreateDialog";

export function OverviewPage() {
  const [attaching, setAttaching] = useState(false);
  const [creating, setCreating] = useState(false);
  const [words, setWords] = useState("");
  return (
    <>
      <Attention />
      <Totals />
      <Panel
        title="Devices"
        aside={
          <>
            {devices.value.length > 1 && (
              <Input
                label="Search the devices"
                spoken
                class="search"
                type="search"
                placeholder="Search"
                value={words}
                onSet={setWords}
              />
            )}
            <Demo />
            <Button needs="operator" onClick={() => setAttaching(true)}>
              Attach a device
            </Button>
            <Button needs="administrator" onClick={() => setCreating(true)}>
              Create a device
            </Button>
          </>
        }
      >
        {devices.value.length > 0 ? (
          <>
            <DeviceTree words={words} />
            <Legend />
          </>
        ) : (
          loaded.value && <FirstVisit />
        )}
      </Panel>
      {version.value && (
        <p class="muted small">
          OpenVSL {version.value.version}
          {host.value !== null && ` on ${host.value}`} · {health.value?.addresses.join(" · ")}
        </p>
      )}
      {attaching && <AttachDialog onClose={() => setAttaching(false)} />}
      {creating && <CreateDialog onClose={() => setCreating(false)} />}
    </>
  );
}

/** What the lights say, for whoever has not seen such a card. */
function Legend() {
  return (
    <p class="legend muted small">
      Lights:
      <Lights attached={false} reading={false} writing beacon={false} /> writes
      <Lights attached={false} reading writing={false} beacon={false} /> reads
      <Lights attached reading={false} writing={false} beacon={false} /> attached
      <Lights attached reading writing beacon /> beacon: all three
    </p>
  );
}

function Attention() {
  const found = concerns(devices.value, alerts.value);
  if (!loaded.value) return null;
  if (found.length === 0) {
    return (
      <Notice tone="ok">
        <State tone="ok">Nothing needs attention</State>
      </Notice>
    );
  }
  return (
    <Panel title="Needs attention" aside={<a href={href("alerts")}>All alerts</a>}>
      <ul class="stack">
        {found.map(({ key, tone, what, device, alert }) => (
          <li key={key} class="row concern">
            <State tone={tone}>{tone}</State>
            {device !== null && <a href={href("live", device)}>{device}</a>}
            <span class="wrap what">{what}</span>
            {alert && <Cure of={alert} />}
            {alert && <span class="muted small">since {moment(alert.raised_ms)}</span>}
            {alert && may("operator") && <Acknowledge alert={alert} />}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Acknowledge({ alert }: { alert: Alert }) {
  return (
    <Button
      class="push"
      onClick={() => act(`Acknowledged: ${alert.what}`, () => post(`/alerts/${alert.id}/acknowledge`))}
    >
      Acknowledge
    </Button>
  );
}

function sum(metric: string): number {
  return devices.value.reduce((total, device) => total + (value(device.name, metric) ?? 0), 0);
}

function Totals() {
  const all: readonly Device[] = devices.value;
  const capacity = all.reduce((total, device) => total + (device.bytes ?? 0), 0);
  const held = all.reduce((total, device) => total + (device.mapped_bytes ?? 0), 0);
  return (
    <Panel label="Totals">
      <Figures
        of={[
          {
            label: "Attached",
            value: health.value?.attached ?? "–",
            note: health.value?.failed ? `${health.value.failed} failed` : "devices",
          },
          {
            label: "Reads",
            value: (
              <>
                {short(sum("read_iops"))} <small>IOPS</small>
              </>
            ),
            note: `${bytes(sum("read_bytes_per_s"))}/s`,
          },
          {
            label: "Writes",
            value: (
              <>
                {short(sum("write_iops"))} <small>IOPS</small>
              </>
            ),
            note: `${bytes(sum("write_bytes_per_s"))}/s`,
          },
          { label: "Capacity", value: bytes(capacity), note: `${bytes(held)} hold data` },
          {
            label: "Clients",
            value: count(sum("clients")),
            note: `${short(sum("queue_depth"))} requests under way`,
          },
          {
            label: "Service",
            value: percent(value(SERVICE, "cpu_percent")),
            note: `of a processor · ${bytes(value(SERVICE, "memory_bytes"))}`,
          },
        ]}
      />
    </Panel>
  );
}

function Demo() {
  const running = devices.value.some((device) => device.name === DEMO);
  if (!may("operator") || !loaded.value) return null;
  if (!running) {
    return (
      <Button onClick={startDemo} title="Makes a device in memory with a moderate load on it">
        Start the demo
      </Button>
    );
  }
  return <Button onClick={stopDemo}>Stop the demo</Button>;
}

function FirstVisit() {
  return (
    <Empty title="No device is attached yet">
      <p>
        The demo makes a device in memory and puts a load on it, so that there is something to see. Stopping
        it takes both away.
      </p>
      {may("operator") && (
        <Button class="primary" onClick={startDemo}>
          Start the demo
        </Button>
      )}
      <p>
        Or make a device of your own: <code>vsl create scratch.vsl --size 8GiB</code>, and attach it here.
      </p>
    </Empty>
  );
}
