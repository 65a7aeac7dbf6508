import { useState } from "preact/hooks";
import type { FleetDevice, FleetMove } from "../../api/types";
import { Button } from "../../parts/Button";
import { Panel } from "../../parts/Panel";
import { Mark, type Tone } from "../../parts/State";
import { type Column, Table } from "../../parts/Table";
import { useResource } from "../../state/resource";
import { ago } from "../../text/moment";
import { MoveDialog } from "./MoveDialog";

/** What a host is to a device, in one tone. */
const TONES: Record<string, Tone> = {
  owner: "ok",
  "stand-by": "off",
  released: "off",
  elsewhere: "warning",
  outdated: "warning",
  unknown: "warning",
};

const WORDS: Record<string, string> = {
  owner: "Has it",
  "stand-by": "Stands by",
  released: "Released",
  elsewhere: "Another host has it",
  outdated: "Was taken over from",
  fenced: "Was taken over from",
  failed: "Not attached",
  unknown: "Not known",
};

const STATES: Record<string, string> = {
  detaching: "being detached",
  attaching: "being attached",
  "going-back": "being attached again where it was",
  moved: "moved",
  failed: "not moved",
};

/** Which host has which device on objects, and moves of devices between hosts. */
export function Fleet({ hosts }: { hosts: readonly string[] }) {
  const { value, again } = useResource<FleetDevice[]>("/fleet", 5000, "here");
  const moves = useResource<FleetMove[]>("/fleet/moves", 2000, "here");
  const [moving, setMoving] = useState<FleetDevice | null>(null);
  if (value === null || (value.length === 0 && !moves.value?.length)) return null;
  const columns: Column<FleetDevice>[] = [
    {
      title: "Device",
      cell: ({ name, address }) => (
        <>
          <strong>{name}</strong>
          <br />
          <span class="muted small wrap">{address}</span>
        </>
      ),
    },
    {
      title: "Host",
      labelled: true,
      cell: ({ host, role, epoch }) => (
        <>
          <Mark tone={TONES[role] ?? "critical"} /> {host ?? "–"}
          <br />
          <span class="muted small">
            {WORDS[role] ?? role}
            {epoch ? `, as owner ${epoch}` : ""}
          </span>
        </>
      ),
    },
    { title: "Health", cell: ({ health }) => <span class="wrap">{health}</span> },
    {
      title: "Actions",
      spoken: true,
      number: true,
      cell: (one) =>
        one.role === "owner" && hosts.length > 0 ? (
          <Button needs="operator" onClick={() => setMoving(one)} of={one.name}>
            Move
          </Button>
        ) : null,
    },
  ];
  return (
    <Panel label="Devices on objects" title="Which host has which device on objects">
      <Table
        class="cards"
        label="Table of devices on objects"
        rows={value}
        keyOf={({ host, name, address, role }) => `${host} ${name} ${address} ${role}`}
        columns={columns}
        empty={null}
      />
      {moves.value?.slice(0, 5).map((move) => (
        <p key={move.id} class="small wrap">
          <Mark tone={move.state === "failed" ? "critical" : move.state === "moved" ? "ok" : "off"} />{" "}
          {move.device} from {move.from} to {move.to}: {STATES[move.state] ?? move.state},{" "}
          {ago(move.ended_ms ?? move.began_ms)}
          {move.error ? `: ${move.error}` : ""}
        </p>
      ))}
      {moving && (
        <MoveDialog
          of={moving}
          hosts={["here", ...hosts].filter((name) => name !== moving.host)}
          onClose={() => {
            setMoving(null);
            again();
            moves.again();
          }}
        />
      )}
    </Panel>
  );
}
