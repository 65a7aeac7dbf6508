import { useState } from "preact/hooks";
import { patch, post, remove, seg } from "../../api/client";
import type { Account, MadeKey, Role } from "../../api/types";
import { Button } from "../../parts/Button";
import { Copy } from "../../parts/Copy";
import { Dialog } from "../../parts/Dialog";
import { Input, Options, Select } from "../../parts/Field";
import { Empty, Notice, Trouble } from "../../parts/Notice";
import { Panel } from "../../parts/Panel";
import { type Column, Table } from "../../parts/Table";
import { act } from "../../state/action";
import { ROLES } from "../../state/link";
import { useResource } from "../../state/resource";
import { moment } from "../../text/moment";

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
  const voidKey = (name: string, id: string) =>
    change(`The key ${id} is void`, () => remove(`/accounts/${seg(name)}/keys/${seg(id)}`));
  const drop = (name: string) => change(`${name} is gone`, () => remove(`/accounts/${seg(name)}`));
  const columns: Column<Account>[] = [
    {
      title: "Account",
      cell: ({ name, password }) => (
        <>
          <strong>{name}</strong>
          <br />
          <span class="muted small">{password ? "with a password" : "keys only"}</span>
        </>
      ),
    },
    {
      title: "Role",
      cell: (account) => (
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
      ),
    },
    {
      title: "Access keys",
      cell: (account) => (
        <>
          <ul class="stack">
            {account.keys.map((one) => (
              <li key={one.id} class="row">
                <code>{one.id}</code>
                <span class="muted small">
                  {one.note}, {moment(one.created * 1000)}
                </span>
                <Button class="quiet" onClick={() => voidKey(account.name, one.id)} of={`key ${one.id}`}>
                  Void
                </Button>
              </li>
            ))}
          </ul>
          <Button class="quiet" onClick={() => makeKey(account.name)} of={`for ${account.name}`}>
            New key
          </Button>
        </>
      ),
    },
    {
      title: "Actions",
      spoken: true,
      number: true,
      cell: ({ name }) => (
        <Button class="quiet" onClick={() => drop(name)} of={name}>
          Delete
        </Button>
      ),
    },
  ];
  return (
    <Panel
      label="Accounts"
      title="Accounts and access keys"
      aside={<Button onClick={() => setAdding(true)}>Add an account</Button>}
    >
      <Table
        class="cards"
        label="Table of accounts"
        rows={value}
        keyOf={({ name }) => name}
        columns={columns}
        empty={
          <Empty title="No accounts yet">
            On this machine the token is enough. From elsewhere only accounts get in, and only over TLS.
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
      {key && (
        <Dialog title={`New access key for ${key.of}`} onClose={() => setKey(null)}>
          <Notice tone="warning">This is the only time that it is shown.</Notice>
          <div class="row">
            <code class="wrap">{key.key}</code>
            <Copy text={key.key} what="the access key" />
          </div>
        </Dialog>
      )}
    </Panel>
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
        blame={/^the password/}
        value={password}
        onSet={setPassword}
      />
    </Dialog>
  );
}
