import { useState } from "preact/hooks";
import { host } from "../api/client";
import type { Device, Host } from "../api/types";
import { href } from "../route";
import { type Adapter, adapters, filesOf, standing, tone } from "../state/attention";
import { devices, health, lookAt } from "../state/fleet";
import { useResource } from "../state/resource";
import { value } from "../state/telemetry";
import { bytes, micros, number, percent, short } from "../text/quantity";
import { matches } from "../text/search";
import { Button } from "./Button";
import { HostState } from "./HostState";
import { Lights } from "./Lights";
import { Meter } from "./Meter";
import { Scroll } from "./Scroll";
import { State } from "./State";
import { type Heading, Headings } from "./Table";
import { Trend } from "./Trend";

/** What the keys of modules begin with. */
const MODULE = "module ";

const HEADINGS: readonly Heading[] = [
  { title: "Name" },
  { title: "Lights" },
  { title: "Health" },
  { title: "Data held" },
  { title: "Free below", number: true },
  { title: "Temperature", number: true },
  { title: "Reads", number: true },
  { title: "Writes", number: true },
  { title: "Last 15 min" },
  { title: "Write p99", number: true },
];

/** What a device can be found by. */
const wordsOf = ({ name, label, uuid, profile, path, state, health, uri, clients }: Device) =>
  [name, label, uuid, profile, path, state, health, uri, clients?.map(({ peer }) => peer)].flat();

/** Host, adapters, modules and volumes as a tree, each module with how it does just now. Arrow keys move between rows. */
export function DeviceTree({ words }: { words: string }) {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  // Modules are closed until somebody opens them, so that many fit on a screen; what holds them is open until it is closed.
  const toggle = (key: string) => {
    const next = new Set(closed);
    if (!next.delete(key)) next.add(key);
    setClosed(next);
  };
  const open = (key: string) => key.startsWith(MODULE) === closed.has(key);
  const found = adapters(devices.value.filter((device) => matches(words, wordsOf(device))));
  const others = useResource<Host[]>("/hosts", 10_000, "here");
  return (
    <Scroll label="Tree of devices">
      {/* biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a treegrid made of a table is the pattern that ARIA describes. */}
      <table class="tree" role="treegrid" aria-label="Host, adapters, modules and volumes" onKeyDown={arrows}>
        <Headings of={HEADINGS} />
        <tbody>
          <Group
            level={1}
            open={open("host")}
            onToggle={() => toggle("host")}
            kind="Host"
            name={host.value ?? window.location.hostname}
            about={`${health.value?.attached ?? 0} attached`}
            of={devices.value}
          />
          {open("host") &&
            found.map((adapter) => (
              <AdapterRows key={adapter.key} adapter={adapter} open={open} onToggle={toggle} />
            ))}
          {found.length === 0 && (
            <tr aria-level={2}>
              <td colSpan={HEADINGS.length}>No device here has these words</td>
            </tr>
          )}
          {host.value === null && others.value?.map((other) => <HostRow key={other.name} host={other} />)}
        </tbody>
      </table>
    </Scroll>
  );
}

/** Another host, by what it says of itself; its devices are seen when it is looked at. */
function HostRow({ host }: { host: Host }) {
  return (
    <tr aria-level={1} tabIndex={-1} class="group">
      <td class="level-1 other" colSpan={2}>
        <span class="muted small">Host</span> <strong>{host.name}</strong>
      </td>
      <td>
        <HostState of={host} />
      </td>
      <td colSpan={HEADINGS.length - 4} class="muted small about wrap">
        {host.reachable ? `${host.attached ?? 0} attached, ${host.alerts ?? 0} alerts` : host.error}
      </td>
      <td class="number">
        <Button class="quiet" onClick={() => lookAt(host.name)} of={host.name}>
          Look at
        </Button>
      </td>
    </tr>
  );
}

interface RowsProps {
  adapter: Adapter;
  open: (key: string) => boolean;
  onToggle: (key: string) => void;
}

function AdapterRows({ adapter, open, onToggle }: RowsProps) {
  const { key, kind, title, modules } = adapter;
  const [first, ...others] = modules;
  // A group of one is no group.
  if (first !== undefined && others.length === 0)
    return <ModuleRows device={first} level={2} open={open} onToggle={onToggle} />;
  return (
    <>
      <Group
        level={2}
        open={open(key)}
        onToggle={() => onToggle(key)}
        kind={kind}
        name={title}
        about={`${modules.length} modules`}
        of={modules}
      />
      {open(key) &&
        modules.map((device) => (
          <ModuleRows key={device.name} device={device} level={3} open={open} onToggle={onToggle} />
        ))}
    </>
  );
}

interface ModuleProps extends Pick<RowsProps, "open" | "onToggle"> {
  device: Device;
  level: number;
}

function ModuleRows({ device, level, open, onToggle }: ModuleProps) {
  const key = `${MODULE}${device.name}`;
  const figure = (metric: string) => value(device.name, metric);
  const share = device.bytes ? ((device.mapped_bytes ?? 0) / device.bytes) * 100 : null;
  const celsius = figure("celsius") ?? device.celsius ?? null;
  const attached = device.state === "attached";
  return (
    <>
      <tr aria-level={level} aria-expanded={open(key)} tabIndex={-1}>
        <td class={`level-${level} name`}>
          <Twist open={open(key)} name={device.name} onToggle={() => onToggle(key)} />
          <a href={href("live", device.name)}>{device.name}</a>
          {device.label && device.label !== device.name && <span class="muted small"> {device.label}</span>}
        </td>
        <td data-label="Lights">
          <Lights
            attached={attached}
            beacon={device.beacon === true}
            reading={(figure("read_iops") ?? 0) > 0}
            writing={(figure("write_iops") ?? 0) > 0}
          />
        </td>
        <td data-label="Health">
          <State tone={tone(device)}>{standing(device)}</State>
        </td>
        <td data-label="Data held">
          {share === null ? (
            "–"
          ) : (
            <span class="held">
              <Meter share={share} tone={share > 95 ? "warning" : "ok"} />
              <span class="small">
                {bytes(device.mapped_bytes ?? 0)} of {bytes(device.bytes)}{" "}
                <span class="muted">{percent(share, 0)}</span>
              </span>
            </span>
          )}
        </td>
        <td data-label="Free below" class="number">
          {device.store_free_bytes === undefined || device.store_free_bytes === null ? (
            <span class="muted">–</span>
          ) : (
            bytes(device.store_free_bytes)
          )}
        </td>
        <td data-label="Temperature" class="number">
          {celsius === null ? <span class="muted">–</span> : `${number(celsius)} °C`}
        </td>
        <td data-label="Reads" class="number">
          {rate(figure("read_iops"), figure("read_bytes_per_s"))}
        </td>
        <td data-label="Writes" class="number">
          {rate(figure("write_iops"), figure("write_bytes_per_s"))}
        </td>
        <td data-label="Last 15 min">{attached && <Trend device={device.name} />}</td>
        <td data-label="Write p99" class="number">
          {micros(figure("write_p99_us"))}
        </td>
      </tr>
      {open(key) && (
        <tr aria-level={level + 1} class="volume" tabIndex={-1}>
          <td class={`level-${level + 1}`} colSpan={HEADINGS.length}>
            <span class="muted small">
              {device.profile ? `${device.profile}, ` : ""}
              {filesOf(device)} ·{" "}
            </span>
            {device.uri ? <code class="wrap">{device.uri}</code> : <span class="muted">not exported</span>}
            <span class="muted small">
              {" "}
              · {device.clients?.length ?? 0} {device.clients?.length === 1 ? "client" : "clients"}
              {device.read_only && " · read-only"}
              {device.encryption && ` · ${device.encryption}`}
            </span>
          </td>
        </tr>
      )}
    </>
  );
}

function rate(iops: number | null, bandwidth: number | null) {
  if (iops === null) return <span class="muted">–</span>;
  return (
    <>
      {short(iops)} <span class="muted small">{bytes(bandwidth ?? 0)}/s</span>
    </>
  );
}

interface GroupProps {
  level: number;
  open: boolean;
  onToggle: () => void;
  kind: string;
  name: string;
  about: string;
  of: readonly Device[];
}

function Group({ level, open, onToggle, kind, name, about, of }: GroupProps) {
  const wrong = of.filter((device) => !["ok", "off"].includes(tone(device)));
  const worst = wrong.find((device) => tone(device) === "critical") ?? wrong[0];
  return (
    <tr aria-level={level} aria-expanded={open} tabIndex={level === 1 ? 0 : -1} class="group">
      <td class={`level-${level}`} colSpan={2}>
        <Twist open={open} name={`${kind} ${name}`} onToggle={onToggle} />
        <span class="muted small">{kind}</span> <strong>{name}</strong>
      </td>
      <td>
        {worst === undefined ? (
          <State tone={of.length > 0 ? "ok" : "off"}>{of.length > 0 ? "healthy" : "nothing attached"}</State>
        ) : (
          <State tone={tone(worst)}>
            <a href={href("live", worst.name)}>
              {wrong.length === 1 ? worst.name : `${worst.name} and ${wrong.length - 1} more`}
            </a>
          </State>
        )}
      </td>
      <td colSpan={HEADINGS.length - 3} class="muted small about">
        {about}
      </td>
    </tr>
  );
}

function Twist({ open, name, onToggle }: { open: boolean; name: string; onToggle: () => void }) {
  return (
    <button
      type="button"
      class="twist"
      tabIndex={-1}
      aria-label={`${open ? "Close" : "Open"} ${name}`}
      onClick={onToggle}
    >
      <svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true" class={open ? "open" : ""}>
        <path d="M3 1l4 4-4 4" fill="none" stroke="currentColor" stroke-width="1.6" />
      </svg>
    </button>
  );
}

/** Keys of a tree: up and down move, right opens, left closes, Enter follows the row's link. */
function arrows(event: KeyboardEvent): void {
  const row = (event.target as HTMLElement).closest("tr");
  const body = row?.parentElement;
  if (!row || !body) return;
  const expanded = row.getAttribute("aria-expanded");
  const twist = () => row.querySelector<HTMLButtonElement>(".twist")?.click();
  const to = (next: Element | null | undefined) => {
    if (next instanceof HTMLElement) next.focus();
  };
  switch (event.key) {
    case "ArrowDown":
      to(row.nextElementSibling);
      break;
    case "ArrowUp":
      to(row.previousElementSibling);
      break;
    case "Home":
      to(body.firstElementChild);
      break;
    case "End":
      to(body.lastElementChild);
      break;
    case "ArrowRight":
      if (expanded === "false") twist();
      break;
    case "ArrowLeft":
      if (expanded === "true") twist();
      break;
    case "Enter":
      if (event.target === row) row.querySelector<HTMLAnchorElement>("a")?.click();
      return;
    default:
      return;
  }
  event.preventDefault();
}
