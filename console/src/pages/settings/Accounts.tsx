import { useState } from "preact/hooks";
import { patch, post, remove, seg } from "../../api/client";
import type { Account, MadeKey, Role } from "../../api/types";
import { Copy } from "../../parts/Copy";
import { Dialog } from "../../parts/Dialog";
import { Input, Options, Select } from "../../parts/Field";
import { Empty, Notice, Trouble } from "../../parts/Notice";
import { Scroll } from "../../parts/Scroll";
import { act } from "../../state/action";
import { useResource } from "../../state/resource";
import { moment } from "../../text/moment";

const ROLES: readonly Role[] = ["viewer", "operator", "administrator"];

export function Accounts() {
  const { value, error, again, change } = useResource<Account[]>("/accounts");
  const [adding, setAdding] = useState(false);
  const [key, setKey] = useState<{ of: string; key: string } | null>(null);
  if (error && value === null) return <Trouble of={error} what="Accounts" />;
  const makeKey = (name: string) =>
    change(`${name} has a new access key`, async () => {
      const made = await post<MadeKey>(`/accounts/${seg(name)}/keys`, { note: "made in the console" });
      setKey({ of: name, key: made.key });
    });
  return (
    <section class="panel" aria-label="Accounts">
      <header>
        <h2>Accounts and access keys</h2>
        <button type="button" onClick={() => setAdding(true)}>
          Add an account
        </button>
      </header>
      {value?.length === 0 && (
        <Empty title="No accounts yet">
          On this machine the token is enough. From elsewhere only accounts get in, and only over TLS.
        </Empty>
      )}
      {value && value.length > 0 && (
        <Scroll label="Table of accounts">
          <table class="cards">
            <thead>
              <tr>
                <th scope="col">Account</th>
                <th scope="col">Role</th>
                <th scope="col">Access keys</th>
                <th scope="col">
                  <span class="spoken">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {value.map((account) => (
                <tr key={account.name}>
                  <td>
                    <strong>{account.name}</strong>
                    <br />
                    <span class="muted small">{account.password ? "with a password" : "keys only"}</span>
                  </td>
                  <td>
                    <select
                      aria-label={`Role of ${account.name}`}
                      value={account.role}
                      onChange={(event) => {
                        const role = event.currentTarget.value;
                        void change(`${account.name} is ${role}`, () =>
                          patch(`/accounts/${seg(account.name)}`, { role }),
                        );
                      }}
                    >
                      <Options of={ROLES} />
                    </select>
                  </td>
                  <td>
                    <ul class="stack">
                      {account.keys.map((one) => (
                        <li key={one.id} class="row">
                          <code>{one.id}</code>
                          <span class="muted small">
                            {one.note}, {moment(one.created * 1000)}
                          </span>
                          <button
                            type="button"
                            class="quiet"
                            onClick={() =>
                              void change(`The key ${one.id} is void`, () =>
                                remove(`/accounts/${seg(account.name)}/keys/${seg(one.id)}`),
                              )
                            }
                          >
                            Void<span class="spoken"> key {one.id}</span>
                          </button>
                        </li>
                      ))}
                    </ul>
                    <button type="button" class="quiet" onClick={() => void makeKey(account.name)}>
                      New key<span class="spoken"> for {account.name}</span>
                    </button>
                  </td>
                  <td class="number">
                    <button
                      type="button"
                      class="quiet"
                      onClick={() =>
                        void change(`${account.name} is gone`, () => remove(`/accounts/${seg(account.name)}`))
                      }
                    >
                      Delete<span class="spoken"> {account.name}</span>
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
      {key && (
        <Dialog title={`New access key for ${key.of}`} onClose={() => setKey(null)}>
          <Notice tone="warning">This is the only time that it is shown.</Notice>
          <div class="row">
            <code class="wrap">{key.key}</code>
            <Copy text={key.key} what="the access key" />
          </div>
        </Dialog>
      )}
    </section>
  );
}

function Add({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [password, setPassword] = useState("");
  const add = () => {
    const body = password ? { name: name.trim(), role, password } : { name: name.trim(), role };
    return act(`The account ${name.trim()} is made`, () => post("/accounts", body));
  };
  return (
    <Dialog
      title="Add an account"
      onClose={onClose}
      submit={{ label: "Add", ready: name.trim() !== "", work: add }}
    >
      <div class="fields">
        <Input label="Name" autocomplete="off" value={name} onSet={setName} />
        <Select label="Role" value={role} of={ROLES} onSet={setRole} />
      </div>
      <Input
        label="Password (without one it has only access keys)"
        type="password"
        autocomplete="new-password"
        value={password}
        onSet={setPassword}
      />
    </Dialog>
  );
}
