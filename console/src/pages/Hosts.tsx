import { useState } from "preact/hooks";
import { host, post, remove, seg } from "../api/client";
import type { Host } from "../api/types";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { Field, Input } from "../parts/Field";
import { HostState } from "../parts/HostState";
import { Empty, Trouble } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { type Column, Table } from "../parts/Table";
import { go } from "../route";
import { act } from "../state/action";
import { lookAt } from "../state/fleet";
import { useResource } from "../state/resource";
import { ago } from "../text/moment";
import { count } from "../text/quantity";
import { Fleet } from "./hosts/Fleet";

export function HostsPage() {
  const { value, error, again, change } = useResource<Host[]>("/hosts", 5000, "here");
  const [adding, setAdding] = useState(false);
  const drop = (name: string) =>
    change(`The host ${name} is no longer looked after`, () => remove(`/hosts/${seg(name)}`, { at: null }));
  const open = (name: string | null) => {
    lookAt(name);
    go("overview");
  };
  if (error && value === null) return <Trouble of={error} what="Hosts" />;
  const columns: Column<Host>[] = [
    {
      title: "Host",
      cell: ({ name, address }) => (
        <>
          <strong>{name}</strong>
          <br />
          <span class="muted small wrap">{address}</span>
        </>
      ),
    },
    {
      title: "State",
      cell: (one) => (
        <>
          <HostState of={one} />
          {one.error && <p class="muted small wrap">{one.error}</p>}
        </>
      ),
    },
    { title: "Attached", number: true, labelled: true, cell: ({ attached }) => count(attached) },
    { title: "Alerts", number: true, labelled: true, cell: ({ alerts }) => count(alerts) },
    { title: "Version", labelled: true, cell: ({ version }) => version ?? "–" },
    { title: "Seen", labelled: true, cell: ({ seen_ms }) => ago(seen_ms) },
    {
      title: "Actions",
      spoken: true,
      number: true,
      cell: ({ name }) => (
        <>
          <Button class="primary" disabled={host.value === name} onClick={() => open(name)} of={name}>
            {host.value === name ? "Looked at" : "Look at"}
          </Button>
          <Button class="quiet" needs="administrator" onClick={() => drop(name)} of={name}>
            Remove
          </Button>
        </>
      ),
    },
  ];
  return (
    <>
      <Panel
        label="Hosts"
        title="Hosts under this console"
        aside={
          <>
            {host.value !== null && <Button onClick={() => open(null)}>Back to this host</Button>}
            <Button needs="administrator" onClick={() => setAdding(true)}>
              Add a host
            </Button>
          </>
        }
      >
        <Table
          class="cards"
          label="Table of hosts"
          rows={value}
          keyOf={({ name }) => name}
          columns={columns}
          empty={
            <Empty title="No other host yet">
              <p>
                A service elsewhere is reached by its address and an access key, which an administrator of
                that service makes under its Settings. What may be done there is bounded by the role of that
                key.
              </p>
            </Empty>
          }
        />
        {adding && (
          <Add
            onClose={() => {
              setAdding(false);
              again();
            }}
          />
        )}
      </Panel>
      <Fleet hosts={(value ?? []).map(({ name }) => name)} />
    </>
  );
}

function Add({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [address, setAddress] = useState("https://");
  const [key, setKey] = useState("");
  const [certificate, setCertificate] = useState("");
  const add = () => {
    const body: Record<string, string> = { name: name.trim(), address: address.trim(), key: key.trim() };
    if (certificate.trim()) body.certificate = certificate.trim();
    return act(`The host ${name.trim()} is looked after`, () => post("/hosts", body, { at: null }));
  };
  return (
    <Dialog
      title="Add a host"
      onClose={onClose}
      submit={{ label: "Add", ready: name.trim() !== "" && key.trim() !== "", work: add }}
    >
      <div class="fields">
        <Input label="Name" spellcheck={false} value={name} onSet={setName} />
        <Input label="Address" type="url" required spellcheck={false} value={address} onSet={setAddress} />
      </div>
      <Input
        label="Access key of that service"
        type="password"
        autocomplete="off"
        value={key}
        onSet={setKey}
      />
      <Field label="Its certificate, or the one that signed it, where the system does not know it">
        {(id) => (
          <textarea
            id={id}
            class="mono"
            rows={4}
            spellcheck={false}
            placeholder="-----BEGIN CERTIFICATE-----"
            value={certificate}
            onInput={(event) => setCertificate(event.currentTarget.value)}
          />
        )}
      </Field>
    </Dialog>
  );
}
