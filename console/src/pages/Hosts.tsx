import { useState } from "preact/hooks";
import { host, post, remove, seg } from "../api/client";
import type { Host } from "../api/types";
import { Dialog } from "../parts/Dialog";
import { Field, Input } from "../parts/Field";
import { Empty, Trouble } from "../parts/Notice";
import { Scroll } from "../parts/Scroll";
import { State } from "../parts/State";
import { go } from "../route";
import { act } from "../state/action";
import { lookAt } from "../state/fleet";
import { may } from "../state/link";
import { useResource } from "../state/resource";
import { ago } from "../text/moment";
import { count } from "../text/quantity";

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
  return (
    <section class="panel" aria-label="Hosts">
      <header>
        <h2>Hosts under this console</h2>
        {host.value !== null && (
          <button type="button" onClick={() => open(null)}>
            Back to this host
          </button>
        )}
        <button type="button" disabled={!may("administrator")} onClick={() => setAdding(true)}>
          Add a host
        </button>
      </header>
      {value === null ? (
        <Empty title="Asking the service…" />
      ) : value.length === 0 ? (
        <Empty title="No other host yet">
          <p>
            A service elsewhere is reached by its address and an access key, which an administrator of that
            service makes under its Settings. What may be done there is bounded by the role of that key.
          </p>
        </Empty>
      ) : (
        <Scroll label="Table of hosts">
          <table class="cards">
            <thead>
              <tr>
                <th scope="col">Host</th>
                <th scope="col">State</th>
                <th scope="col" class="number">
                  Attached
                </th>
                <th scope="col" class="number">
                  Alerts
                </th>
                <th scope="col">Version</th>
                <th scope="col">Seen</th>
                <th scope="col">
                  <span class="spoken">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {value.map((one) => (
                <tr key={one.name}>
                  <td>
                    <strong>{one.name}</strong>
                    <br />
                    <span class="muted small wrap">{one.address}</span>
                  </td>
                  <td>
                    <State tone={one.reachable ? (one.failed ? "warning" : "ok") : "critical"}>
                      {one.reachable ? (one.failed ? `${one.failed} failed` : "reachable") : "unreachable"}
                    </State>
                    {one.error && <p class="muted small wrap">{one.error}</p>}
                  </td>
                  <td class="number" data-label="Attached">
                    {count(one.attached)}
                  </td>
                  <td class="number" data-label="Alerts">
                    {count(one.alerts)}
                  </td>
                  <td data-label="Version">{one.version ?? "–"}</td>
                  <td data-label="Seen">{ago(one.seen_ms)}</td>
                  <td class="number">
                    <button
                      type="button"
                      class="primary"
                      disabled={host.value === one.name}
                      onClick={() => open(one.name)}
                    >
                      {host.value === one.name ? "Looked at" : "Look at"}
                      <span class="spoken"> {one.name}</span>
                    </button>
                    <button
                      type="button"
                      class="quiet"
                      disabled={!may("administrator")}
                      onClick={() => void drop(one.name)}
                    >
                      Remove<span class="spoken"> {one.name}</span>
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {adding && (
        <Add
          onClose={() => {
            setAdding(false);
            again();
          }}
        />
      )}
    </section>
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
