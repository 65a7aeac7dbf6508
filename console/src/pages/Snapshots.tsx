import { useState } from "preact/hooks";
import { patch, post, remove, seg } from "../api/client";
import type { CloneOf, Device, Snapshot, Snapshots } from "../api/types";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { Check, Confirm, Input } from "../parts/Field";
import { Figures } from "../parts/Figures";
import { Asking, Empty, Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { type Column, Table } from "../parts/Table";
import { device as find } from "../state/fleet";
import { type Resource, useResource } from "../state/resource";
import { ago, moment } from "../text/moment";
import { bytes, count, percent } from "../text/quantity";
import { Schedule } from "./snapshots/Schedule";
import { Timeline } from "./snapshots/Timeline";

/** What a dialog is open for. */
type Deed = "delete" | "rename" | "roll back";
interface Asked {
  deed: Deed;
  of: Snapshot;
}

export function SnapshotsPage({ subject }: { subject: string }) {
  const device = find(subject);
  const path = `/devices/${seg(subject)}/snapshots`;
  const { value, error, change } = useResource<Snapshots>(path, 5000);
  const [making, setMaking] = useState(false);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [going, setGoing] = useState<CloneOf | null>(null);
  if (device === null) return null;
  if (device.emulation !== undefined) return <Empty title="Emulated cards take no snapshots" />;
  if (value === null) return <Asking error={error} what="Snapshots" />;
  const about = { path, change, onClose: () => setAsked(null) };
  const clones = [...value.snapshots].reverse().flatMap((snapshot) => snapshot.clones ?? []);
  return (
    <>
      <Panel
        label="Snapshots"
        title="What the device held"
        aside={
          <Button needs="operator" onClick={() => setMaking(true)}>
            Make a snapshot…
          </Button>
        }
      >
        <Held device={device} listed={value} />
        {value.snapshots.length > 0 ? (
          <Timeline snapshots={value.snapshots} />
        ) : (
          <Empty title="No snapshot yet">
            A snapshot shows what the device held at a moment. It takes space only for what is overwritten or
            trimmed after it.
          </Empty>
        )}
      </Panel>
      <Schedule device={subject} schedule={value.schedule ?? null} change={change} />
      {value.snapshots.length > 0 && (
        <Panel label="List of snapshots">
          <Table
            class="cards"
            label="Table of snapshots"
            rows={[...value.snapshots].reverse()}
            keyOf={({ name }) => name}
            columns={columns(path, change, setAsked)}
          />
        </Panel>
      )}
      {clones.length > 0 && (
        <Panel label="Clones" title="Clones of snapshots">
          <Table
            class="cards"
            label="Table of clones"
            rows={clones}
            keyOf={({ name }) => name}
            columns={cloneColumns(setGoing)}
          />
        </Panel>
      )}
      {going !== null && (
        <DeleteClone
          path={`/devices/${seg(subject)}/clones`}
          change={change}
          onClose={() => setGoing(null)}
          of={going}
        />
      )}
      {making && <Make path={path} change={change} onClose={() => setMaking(false)} />}
      {asked?.deed === "rename" && <Rename {...about} of={asked.of} />}
      {asked?.deed === "delete" && <Delete {...about} of={asked.of} />}
      {asked?.deed === "roll back" && <RollBack {...about} of={asked.of} device={device} all={value} />}
    </>
  );
}

function Held({ device, listed }: { device: Device; listed: Snapshots }) {
  return (
    <Figures
      of={[
        { label: "Snapshots", value: count(listed.snapshots.length) },
        {
          label: "Held by snapshots only",
          value: bytes(listed.held_bytes),
          note: `beside ${bytes(device.mapped_bytes)} that the device holds`,
        },
        {
          label: "Room left",
          value: bytes(listed.room_bytes),
          note:
            device.room_used_percent === undefined || device.room_used_percent === null
              ? "not written yet"
              : `${percent(device.room_used_percent, 0)} used; writes are refused at 100 %`,
        },
      ]}
    />
  );
}

type Change = Resource<Snapshots>["change"];

function columns(path: string, change: Change, onAsk: (asked: Asked) => void): readonly Column<Snapshot>[] {
  const hold = ({ name, held }: Snapshot) =>
    void change(held ? `${name} may be deleted` : `${name} is held`, () =>
      patch(`${path}/${seg(name)}`, { held: !held }),
    );
  return [
    { title: "Name", head: true, class: "wrap", cell: ({ name }) => name },
    {
      title: "Created",
      labelled: true,
      cell: ({ created }) => (
        <>
          {moment(created * 1000)} <span class="muted small">{ago(created * 1000)}</span>
        </>
      ),
    },
    { title: "Alone", labelled: true, number: true, cell: ({ alone_bytes }) => bytes(alone_bytes) },
    { title: "Shows", labelled: true, number: true, cell: ({ mapped_bytes }) => bytes(mapped_bytes) },
    { title: "Held", cell: ({ held }) => held && <span class="badge">held</span> },
    {
      title: "Actions",
      spoken: true,
      cell: (one) => (
        <div class="row end">
          <Button class="quiet" needs="operator" of={one.name} onClick={() => hold(one)}>
            {one.held ? "Release" : "Hold"}
          </Button>
          <Button
            class="quiet"
            needs="operator"
            of={one.name}
            onClick={() => onAsk({ deed: "rename", of: one })}
          >
            Rename…
          </Button>
          <Button
            class="quiet"
            needs="administrator"
            of={`to ${one.name}`}
            onClick={() => onAsk({ deed: "roll back", of: one })}
          >
            Roll back…
          </Button>
          <Button
            class="quiet"
            needs="operator"
            disabled={one.held || (one.clones ?? []).length > 0}
            of={one.name}
            onClick={() => onAsk({ deed: "delete", of: one })}
          >
            Delete…
          </Button>
        </div>
      ),
    },
  ];
}

function cloneColumns(onAsk: (of: CloneOf) => void): readonly Column<CloneOf>[] {
  return [
    { title: "Name", head: true, class: "wrap", cell: ({ name }) => name },
    { title: "Stands on", labelled: true, class: "wrap", cell: ({ snapshot }) => snapshot },
    {
      title: "Created",
      labelled: true,
      cell: ({ created }) => (
        <>
          {moment(created * 1000)} <span class="muted small">{ago(created * 1000)}</span>
        </>
      ),
    },
    { title: "Own", labelled: true, number: true, cell: ({ own_bytes }) => bytes(own_bytes) },
    {
      title: "Actions",
      spoken: true,
      cell: (one) => (
        <div class="row end">
          <Button class="quiet" needs="operator" of={one.name} onClick={() => onAsk(one)}>
            Delete…
          </Button>
        </div>
      ),
    },
  ];
}

interface DeedProps {
  path: string;
  change: Change;
  onClose: () => void;
}

/** The field of a snapshot's name, which takes what the service says of names. */
function Name(props: { label: string; value: string; onSet: (name: string) => void }) {
  const hint = "1 to 63 letters, digits and any of . _ : + -";
  return <Input {...props} hint={hint} blame={/name/} autocomplete="off" spellcheck={false} />;
}

function Make({ path, change, onClose }: DeedProps) {
  const [name, setName] = useState("");
  const make = () => change(`Made ${name.trim()}`, () => post(path, { name: name.trim() }));
  return (
    <Dialog
      title="Make a snapshot"
      onClose={onClose}
      submit={{ label: "Make", ready: name.trim() !== "", work: make }}
    >
      <p>
        It holds every write that was answered until now. What programs have in their own memory it does not
        hold.
      </p>
      <Name label="Name" value={name} onSet={setName} />
    </Dialog>
  );
}

function Rename({ path, change, onClose, of }: DeedProps & { of: Snapshot }) {
  const [name, setName] = useState(of.name);
  const rename = () =>
    change(`${of.name} is ${name.trim()} now`, () => patch(`${path}/${seg(of.name)}`, { name: name.trim() }));
  const ready = name.trim() !== "" && name.trim() !== of.name;
  return (
    <Dialog title={`Rename ${of.name}`} onClose={onClose} submit={{ label: "Rename", ready, work: rename }}>
      <Name label="New name" value={name} onSet={setName} />
      <p class="muted small">The schedule deletes no snapshot that has another name than it gave.</p>
    </Dialog>
  );
}

function Delete({ path, change, onClose, of }: DeedProps & { of: Snapshot }) {
  const work = () => change(`Deleted ${of.name}`, () => remove(`${path}/${seg(of.name)}`));
  return (
    <Dialog title={`Delete ${of.name}`} onClose={onClose} submit={{ label: "Delete", danger: true, work }}>
      <p>
        Nothing shows any more what the device held on {moment(of.created * 1000)}. The device itself stays as
        it is; {bytes(of.alone_bytes)} that only this snapshot holds become free, bit by bit.
      </p>
    </Dialog>
  );
}

function DeleteClone({ path, change, onClose, of }: DeedProps & { of: CloneOf }) {
  const work = () => change(`Deleted ${of.name}`, () => remove(`${path}/${seg(of.name)}`));
  return (
    <Dialog title={`Delete ${of.name}`} onClose={onClose} submit={{ label: "Delete", danger: true, work }}>
      <p>
        What was written to this clone is lost, and {bytes(of.own_bytes)} become free, bit by bit. The
        snapshot {of.snapshot} and the device stay as they are. Who is connected to the clone gets errors.
      </p>
    </Dialog>
  );
}

function RollBack(props: DeedProps & { of: Snapshot; device: Device; all: Snapshots }) {
  const { path, change, onClose, of, device, all } = props;
  const [typed, setTyped] = useState("");
  const [deleteNewer, setDeleteNewer] = useState(false);
  const newer = all.snapshots.length - 1 - all.snapshots.findIndex(({ name }) => name === of.name);
  const clients = device.clients?.length ?? 0;
  const work = () =>
    change(`${device.name} holds again what ${of.name} shows`, () =>
      post(`${path}/${seg(of.name)}/roll-back`, { confirm: typed, delete_newer: deleteNewer }),
    );
  return (
    <Dialog
      title={`Roll ${device.name} back to ${of.name}`}
      onClose={onClose}
      submit={{ label: "Roll back", danger: true, ready: typed === device.name, work }}
    >
      <Notice tone="critical">
        <strong>What was written since the newest snapshot is lost.</strong> {device.name} holds again what it
        held on {moment(of.created * 1000)}. Make a snapshot first to keep what it holds now.
      </Notice>
      {clients > 0 && (
        <Notice tone="warning">
          {clients} {clients === 1 ? "client is" : "clients are"} connected. While they are, it is refused:
          they would not notice.
        </Notice>
      )}
      {newer > 0 && (
        <Check value={deleteNewer} onSet={setDeleteNewer}>
          Delete {newer === 1 ? "the snapshot that is newer" : `the ${newer} snapshots that are newer`}
        </Check>
      )}
      <Confirm name={device.name} value={typed} onSet={setTyped} />
    </Dialog>
  );
}
