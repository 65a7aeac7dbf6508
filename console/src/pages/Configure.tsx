import { useState } from "preact/hooks";
import { post, seg } from "../api/client";
import type { Client, Device } from "../api/types";
import { Copy } from "../parts/Copy";
import { Input } from "../parts/Field";
import { Figures } from "../parts/Figures";
import { Form } from "../parts/Form";
import { Empty } from "../parts/Notice";
import { type Column, Table } from "../parts/Table";
import { href } from "../route";
import { act } from "../state/action";
import { device as find } from "../state/fleet";
import { may } from "../state/link";
import { ago } from "../text/moment";
import { bytes, count, percent } from "../text/quantity";
import { Detach, Load } from "./configure/Danger";
import { Recording } from "./configure/Recording";
import { SettingsForm } from "./configure/SettingsForm";

export function ConfigurePage({ subject }: { subject: string }) {
  const device = find(subject);
  if (device === null) return null;
  return (
    <div class="flow">
      <section class="panel" aria-label="Attachment">
        <header>
          <h2>Attachment</h2>
          <Detach device={device} />
        </header>
        <dl class="pairs">
          <dt>State</dt>
          <dd>
            {device.state}, {device.health}
          </dd>
          <dt>Device file</dt>
          <dd class="wrap mono">{(device.paths ?? [device.path]).join(", ")}</dd>
          <dt>Access</dt>
          <dd>{device.read_only ? "read-only" : "read and write"}</dd>
        </dl>
        <div class="row">
          <Load device={device} />
          <a class="button" href={href("format", device.name)}>
            Format…
          </a>
        </div>
      </section>

      <section class="panel" aria-label="Settings">
        <header>
          <h2>Settings</h2>
          <span class="muted small">kept on the device</span>
        </header>
        {device.config ? (
          <SettingsForm device={device.name} config={device.config} />
        ) : (
          <Empty title="Only while it is attached" />
        )}
      </section>

      <Exports device={device} />

      <section class="panel" aria-label="Durability">
        <header>
          <h2>Durability and upkeep</h2>
        </header>
        <Durability device={device} />
        <Upkeep device={device} />
      </section>

      <section class="panel" aria-label="Encryption">
        <header>
          <h2>Encryption</h2>
        </header>
        <Encryption device={device} />
      </section>

      <section class="panel" aria-label="Recording">
        <header>
          <h2>Recording</h2>
          <span class="muted small">what clients ask, as a trace</span>
        </header>
        <Recording device={device.name} />
      </section>
    </div>
  );
}

const CLIENTS: readonly Column<Client>[] = [
  {
    title: "Client",
    head: true,
    cell: ({ peer, tls }) => (
      <>
        {peer} {tls && <span class="badge ok">TLS</span>}
      </>
    ),
  },
  { title: "Since", cell: ({ since }) => ago(since * 1000) },
  { title: "Requests", number: true, cell: ({ requests }) => count(requests) },
  { title: "Read", number: true, cell: ({ read_bytes }) => bytes(read_bytes) },
  { title: "Written", number: true, cell: ({ written_bytes }) => bytes(written_bytes) },
  { title: "Under way", number: true, cell: ({ in_flight }) => count(in_flight) },
];

function Exports({ device }: { device: Device }) {
  const addresses = [device.uri, device.tcp_uri].filter((one) => one !== undefined);
  const clients = device.clients ?? [];
  return (
    <section class="panel" aria-label="Exports and clients">
      <header>
        <h2>Exports and clients</h2>
      </header>
      <ul class="stack">
        {addresses.map((one) => (
          <li key={one} class="row">
            <code class="wrap">{one}</code>
            <Copy text={one} what={one} />
          </li>
        ))}
      </ul>
      <Table
        label="Clients"
        rows={clients}
        keyOf={({ peer, since }, position) => `${peer} ${since} ${position}`}
        columns={CLIENTS}
        empty={<p class="muted">No client is connected.</p>}
      />
    </section>
  );
}

function Durability({ device }: { device: Device }) {
  const parity = device.parity_files ?? 0;
  return (
    <>
      <p>
        {device.emulation
          ? "An emulated card has capacitors: what it has answered survives a cut of the drill's power, flushed or not."
          : "What was flushed, or written with FUA, survives a power cut; what was not may be lost, and no write is ever torn."}
      </p>
      <p>
        {parity > 0
          ? `${device.files} files, of which any ${parity === 1 ? "one" : parity} may be lost.`
          : "No parity: the loss of its file is the loss of its data."}
      </p>
    </>
  );
}

function Upkeep({ device }: { device: Device }) {
  const [onto, setOnto] = useState("");
  const scrubbing = device.scrub_percent !== undefined && device.scrub_percent !== null;
  const scrub = (on: boolean) =>
    void act(on ? `${device.name} is scrubbed` : `The scrub of ${device.name} has stopped`, () =>
      post(`/devices/${seg(device.name)}/scrub`, { on }),
    );
  const lost = device.lost_dies ?? [];
  return (
    <div class="stack">
      <div class="row">
        <span>
          {scrubbing
            ? `Scrubbing: ${percent(device.scrub_percent)} read and checked.`
            : "A scrub reads and checks everything that lives on it."}
        </span>
        <button type="button" class="push" disabled={!may("operator")} onClick={() => scrub(!scrubbing)}>
          {scrubbing ? "Stop" : "Scrub"}
        </button>
      </div>
      {device.rebuilding_die !== undefined && device.rebuilding_die !== null && (
        <p>
          Die {device.rebuilding_die} is being rebuilt: {percent(device.rebuild_percent)}.
        </p>
      )}
      {lost.map((die) => (
        <Form
          key={die}
          class="row"
          onSubmit={() => {
            const body = onto.trim() === "" ? { die } : { die, onto: onto.trim() };
            void act(`Die ${die} of ${device.name} is being rebuilt`, () =>
              post(`/devices/${seg(device.name)}/rebuild`, body),
            );
          }}
        >
          <Input
            label={`Die ${die} is lost. Rebuild it onto (by default its old file)`}
            class="grow"
            spellcheck={false}
            value={onto}
            onSet={setOnto}
          />
          <button type="submit" class="bottom" disabled={!may("operator")}>
            Rebuild
          </button>
        </Form>
      ))}
    </div>
  );
}

function Encryption({ device }: { device: Device }) {
  if (!device.encryption) {
    return (
      <p class="muted">
        Not encrypted. <code>vsl create --encrypt</code> makes a device that is; it cannot be turned on later.
      </p>
    );
  }
  return (
    <Figures
      of={[
        { label: "Cipher", value: device.encryption, plain: true },
        { label: "Key slots in use", value: (device.key_slots ?? []).join(", ") || "–", plain: true },
        { label: "Change them with", value: <code>vsl key</code>, plain: true },
      ]}
    />
  );
}
