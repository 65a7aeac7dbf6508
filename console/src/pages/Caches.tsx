import { useState } from "preact/hooks";
import { post, seg } from "../api/client";
import type { CachedVolume } from "../api/types";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { Check, Confirm, Input, Select } from "../parts/Field";
import { Figures } from "../parts/Figures";
import { Meter } from "../parts/Meter";
import { Empty, Notice, Trouble } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { State, type Tone } from "../parts/State";
import { type Column, Table } from "../parts/Table";
import { devices } from "../state/fleet";
import { type Resource, useResource } from "../state/resource";
import { bytes, NONE, percent } from "../text/quantity";
import { parseSize } from "../text/size";

interface Caches {
  caches: CachedVolume[];
}

type Change = Resource<Caches>["change"];
type Asked = { deed: "mode" | "room" | "delete"; of: CachedVolume } | { deed: "make" };

const MODES = ["write-around", "write-through", "write-back"] as const;

const TONES: Record<string, Tone> = { healthy: "ok", degraded: "warning", opening: "off", stopped: "off" };

export function CachesPage() {
  const { value, error, change } = useResource<Caches>("/caches", 3000);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [chosen, setChosen] = useState<string | null>(null);
  if (error && value === null) return <Trouble of={error} what="Caches" />;
  const shown = value?.caches.find(({ name }) => name === chosen) ?? value?.caches[0];
  const close = () => setAsked(null);
  return (
    <>
      <Panel
        title="Cached volumes"
        aside={
          <Button needs="administrator" onClick={() => setAsked({ deed: "make" })}>
            Put a cache in front…
          </Button>
        }
      >
        <Table
          class="cards"
          label="Table of cached volumes"
          rows={value?.caches}
          keyOf={({ name }) => name}
          columns={columns(setAsked, setChosen, change)}
          chosen={({ name }) => name === shown?.name && (value?.caches.length ?? 0) > 1}
          empty={
            <Empty title="No cached volume yet">
              <p>
                An attached device with a sparse address space becomes the cache of slower storage: of a file,
                a disk, an NBD export, an NVMe namespace or another device.
              </p>
            </Empty>
          }
        />
      </Panel>
      {shown && <OneVolume of={shown} />}
      {asked?.deed === "make" && <Make change={change} onClose={close} />}
      {asked?.deed === "mode" && <Mode of={asked.of} change={change} onClose={close} />}
      {asked?.deed === "room" && <Room of={asked.of} change={change} onClose={close} />}
      {asked?.deed === "delete" && <Delete of={asked.of} change={change} onClose={close} />}
    </>
  );
}

/** Of what was read since it was opened, the share that the cache had, per cent. */
function hits({ hit_bytes, missed_bytes }: CachedVolume): number | null {
  const read = (hit_bytes ?? 0) + (missed_bytes ?? 0);
  return read > 0 ? ((hit_bytes ?? 0) / read) * 100 : null;
}

function columns(
  ask: (of: Asked) => void,
  choose: (name: string) => void,
  change: Change,
): readonly Column<CachedVolume>[] {
  return [
    {
      title: "Volume",
      cell: (one) => (
        <>
          <Button class="quiet" onClick={() => choose(one.name)}>
            {one.name}
          </Button>
          <br />
          <span class="muted small wrap">
            {one.behind} behind {one.cache}
          </span>
        </>
      ),
    },
    {
      title: "State",
      cell: ({ state, health }) => (
        <>
          <State tone={TONES[state] ?? "critical"}>{state}</State>
          {state !== "healthy" && <p class="muted small wrap">{health}</p>}
        </>
      ),
    },
    { title: "Writes", labelled: true, cell: ({ mode }) => mode },
    {
      title: "Hits",
      labelled: true,
      cell: (one) => (
        <span class="held">
          <Meter share={hits(one)} />
          <span class="small">{percent(hits(one))}</span>
        </span>
      ),
    },
    { title: "Dirty", number: true, labelled: true, cell: ({ dirty_bytes }) => bytes(dirty_bytes) },
    {
      title: "Actions",
      spoken: true,
      number: true,
      cell: (one) => (
        <>
          <Button
            class="quiet"
            needs="operator"
            of={one.name}
            disabled={!one.dirty_bytes}
            onClick={() =>
              void change(`All of ${one.name} stands behind`, () =>
                post(`/caches/${seg(one.name)}/flush`, {}),
              )
            }
          >
            Flush
          </Button>
          <Button
            class="quiet"
            needs="administrator"
            of={one.name}
            onClick={() => ask({ deed: "mode", of: one })}
          >
            Open…
          </Button>
          <Button
            class="quiet"
            needs="administrator"
            of={one.name}
            onClick={() => ask({ deed: "room", of: one })}
          >
            Room…
          </Button>
          <Button
            class="quiet"
            needs="administrator"
            of={one.name}
            onClick={() => ask({ deed: "delete", of: one })}
          >
            Delete…
          </Button>
        </>
      ),
    },
  ];
}

/** What one volume does, and what it would do with more or less room. */
function OneVolume({ of }: { of: CachedVolume }) {
  const { estimates } = of;
  const rooms =
    estimates?.rooms.filter(({ hit_ratio }) => hit_ratio !== null && hit_ratio !== undefined) ?? [];
  return (
    <Panel title={`${of.name} since it was opened`}>
      <Figures
        of={[
          {
            label: "Read",
            value: bytes((of.hit_bytes ?? 0) + (of.missed_bytes ?? 0)),
            note: `${percent(hits(of))} from the cache`,
          },
          {
            label: "Held by the cache",
            value: bytes(of.cached_bytes),
            note: `share ${of.share}${of.limit_bytes ? `, at most ${bytes(of.limit_bytes)}` : ""}`,
          },
          { label: "Copied into the cache", value: bytes(of.filled_bytes) },
          { label: "Written or trimmed", value: bytes(of.changed_bytes) },
          {
            label: "Not behind yet",
            value: bytes(of.dirty_bytes),
            note: of.dirty_limit_bytes ? `of at most ${bytes(of.dirty_limit_bytes)}` : undefined,
          },
          { label: "Written behind", value: bytes(of.written_back_bytes) },
          { label: "Copies dropped", value: of.dropped_regions ?? NONE, note: "regions, when it was opened" },
        ]}
      />
      {rooms.length > 0 && estimates && (
        <Table
          label="What other rooms would do"
          caption={`What a smaller or larger cache would do, of the last ${bytes(estimates.read_bytes)} read; the volume itself had ${percent(ratio(estimates.hit_ratio))}`}
          rows={rooms}
          keyOf={({ room_bytes }) => room_bytes}
          columns={[
            { title: "Room", number: true, cell: ({ room_bytes }) => bytes(room_bytes) },
            {
              title: "Hits",
              cell: ({ hit_ratio, full }) => (
                <span class="held">
                  <Meter share={ratio(hit_ratio)} />
                  <span class="small">
                    {percent(ratio(hit_ratio))} {!full && <span class="muted">not full yet</span>}
                  </span>
                </span>
              ),
            },
          ]}
        />
      )}
    </Panel>
  );
}

function ratio(share: number | null | undefined): number | null {
  return share === null || share === undefined ? null : share * 100;
}

interface DeedProps {
  change: Change;
  onClose: () => void;
}

function Make({ change, onClose }: DeedProps) {
  const names = devices.value.map(({ name }) => name);
  const [name, setName] = useState("");
  const [cache, setCache] = useState(names[0] ?? "");
  const [behind, setBehind] = useState("");
  const [mode, setMode] = useState<(typeof MODES)[number]>("write-through");
  const where = () => {
    const text = behind.trim();
    if (text.includes("://")) return { address: text };
    return text.includes("/") ? { path: text } : { device: text };
  };
  const make = () =>
    change(`${name.trim()} is served`, () => post("/caches", { name: name.trim(), cache, mode, ...where() }));
  return (
    <Dialog
      title="Put a cache in front of slower storage"
      onClose={onClose}
      submit={{
        label: "Make",
        ready: name.trim() !== "" && behind.trim() !== "" && cache !== "",
        work: make,
      }}
    >
      <p>What stands behind keeps its content and its place.</p>
      <div class="fields">
        <Input
          label="Name"
          blame={/name/}
          autocomplete="off"
          spellcheck={false}
          value={name}
          onSet={setName}
        />
        <Select label="Cache device" value={cache} of={names} onSet={setCache} />
        <Select label="Writes" value={mode} of={MODES} onSet={setMode} />
      </div>
      <Input
        label="Behind"
        hint="a device's name, an absolute path, nbd://HOST/EXPORT or nvme+tcp://HOST:PORT/SUBSYSTEM"
        autocomplete="off"
        spellcheck={false}
        value={behind}
        onSet={setBehind}
      />
    </Dialog>
  );
}

function Mode({ of, change, onClose }: DeedProps & { of: CachedVolume }) {
  const [mode, setMode] = useState<string>(of.mode);
  const [unchanged, setUnchanged] = useState(false);
  const open = () =>
    change(`${of.name} is open, ${mode}`, () => post(`/caches/${seg(of.name)}/open`, { mode, unchanged }));
  return (
    <Dialog title={`Open ${of.name}`} onClose={onClose} submit={{ label: "Open", work: open }}>
      <p>
        One that serves is stopped before, which its clients hinder. With another mode what is dirty goes
        behind first.
      </p>
      <Select label="Writes" value={mode} of={MODES} onSet={setMode} />
      <Check value={unchanged} onSet={setUnchanged}>
        What stands behind is as it was left, whatever it looks like
      </Check>
    </Dialog>
  );
}

function Room({ of, change, onClose }: DeedProps & { of: CachedVolume }) {
  const [share, setShare] = useState(String(of.share));
  const [limit, setLimit] = useState(of.limit_bytes ? String(of.limit_bytes) : "");
  const limited = limit.trim() === "" ? 0 : parseSize(limit);
  const ready = /^\d+$/.test(share.trim()) && limited !== null;
  const set = () =>
    change(`${of.name} has its new share`, () =>
      post(`/caches/${seg(of.name)}/settings`, { share: Number(share), limit_bytes: limited }),
    );
  return (
    <Dialog title={`Room of ${of.name}`} onClose={onClose} submit={{ label: "Set", ready, work: set }}>
      <div class="fields">
        <Input
          label="Share"
          hint="1 to 1000: its weight among the volumes that want more than they have"
          value={share}
          onSet={setShare}
        />
        <Input
          label="Limit"
          hint="the most that the cache holds of it, such as 10GiB; none where it is empty"
          blame={/limit/}
          value={limit}
          onSet={setLimit}
        />
      </div>
    </Dialog>
  );
}

function Delete({ of, change, onClose }: DeedProps & { of: CachedVolume }) {
  const [typed, setTyped] = useState("");
  const [discard, setDiscard] = useState(false);
  const work = () =>
    change(`Deleted ${of.name}`, () => post(`/caches/${seg(of.name)}/delete`, { confirm: typed, discard }));
  return (
    <Dialog
      title={`Delete ${of.name}`}
      onClose={onClose}
      submit={{ label: "Delete", danger: true, ready: typed === of.name, work }}
    >
      <p>
        Everything goes behind first. {of.behind} keeps its content, and the devices are devices of their own
        again.
      </p>
      <Check value={discard} onSet={setDiscard}>
        Lose what is not behind yet
      </Check>
      {discard && (
        <Notice tone="critical">
          <strong>{bytes(of.dirty_bytes)} that clients wrote would be lost.</strong>
        </Notice>
      )}
      <Confirm name={of.name} value={typed} onSet={setTyped} />
    </Dialog>
  );
}
