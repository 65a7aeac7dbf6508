import { seg } from "../../api/client";
import type { Client, Device } from "../../api/types";
import { Copy } from "../../parts/Copy";
import { Panel } from "../../parts/Panel";
import { type Column, Table } from "../../parts/Table";
import { keyOf, type Rates, useRates } from "../../state/rates";
import { useResource } from "../../state/resource";
import { ago } from "../../text/moment";
import { bytes, count, short } from "../../text/quantity";

/** Milliseconds between two looks at the clients: their rates are of this time. */
const LOOK = 2000;

type Row = Client & { rates: Rates | undefined };

/** The protocol; over NVMe each of a host's queues is a client of its own. */
const spoken = ({ protocol, nvme }: Client) => {
  if (nvme === undefined) return protocol;
  return nvme.queue === 0 ? `${protocol}, admin queue` : `${protocol}, queue ${nvme.queue}`;
};

/** A status in the protocol's numbers, as its tools print it. */
const hex = (status: number) => `0x${status.toString(16)}`;

/** How fast just now, and how much since it came. */
const flow = (rate: number | undefined, total: number) => (
  <>
    {rate === undefined ? "–" : `${bytes(rate)}/s`} <span class="muted small">{bytes(total)}</span>
  </>
);

const COLUMNS: readonly Column<Row>[] = [
  {
    title: "Client",
    head: true,
    class: "wrap",
    cell: ({ peer, tls, nvme }) => (
      <>
        {peer} {tls && <span class="badge ok">TLS</span>}
        {nvme?.header_digest && <span class="badge">header digest</span>}
        {nvme?.data_digest && <span class="badge">data digest</span>}
        {nvme !== undefined && <small class="muted nqn">{nvme.host}</small>}
      </>
    ),
  },
  { title: "Protocol", labelled: true, cell: spoken },
  { title: "Came", class: "when", labelled: true, cell: ({ since }) => ago(since * 1000) },
  {
    title: "Requests",
    number: true,
    labelled: true,
    cell: ({ rates, requests }) => (
      <>
        {rates === undefined ? "–" : `${short(rates.requests)}/s`}{" "}
        <span class="muted small">{count(requests)}</span>
      </>
    ),
  },
  {
    title: "Read",
    number: true,
    labelled: true,
    cell: ({ rates, read_bytes }) => flow(rates?.read, read_bytes),
  },
  {
    title: "Written",
    number: true,
    labelled: true,
    cell: ({ rates, written_bytes }) => flow(rates?.written, written_bytes),
  },
  { title: "Under way", number: true, labelled: true, cell: ({ in_flight }) => count(in_flight) },
  { title: "Memory", number: true, labelled: true, cell: ({ memory_bytes }) => bytes(memory_bytes) },
  {
    title: "Last error",
    labelled: true,
    cell: ({ last_error }) => (last_error === undefined ? "none" : hex(last_error)),
  },
];

const NONE: readonly Client[] = [];

/** Where the device is served, and who uses it how much. */
export function Exports({ device }: { device: Device }) {
  const { value } = useResource<Device>(`/devices/${seg(device.name)}`, LOOK);
  const clients = value?.clients ?? NONE;
  const rates = useRates(clients);
  const addresses = [device.uri, device.tcp_uri, device.nvme_command, device.vhost_socket].filter(
    (one) => one !== undefined,
  );
  return (
    <Panel
      title="Exports and clients"
      aside={<span class="muted small">just now, and since the client came</span>}
    >
      <ul class="stack">
        {addresses.map((one) => (
          <li key={one} class="row">
            <code class="wrap">{one}</code>
            <Copy text={one} what={one} />
          </li>
        ))}
      </ul>
      <Table
        class="cards clients"
        label="Clients"
        rows={value && clients.map((client) => ({ ...client, rates: rates.get(keyOf(client)) }))}
        keyOf={keyOf}
        columns={COLUMNS}
        empty={<p class="muted">No client is connected.</p>}
      />
    </Panel>
  );
}
