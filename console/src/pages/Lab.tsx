import { useEffect, useRef, useState } from "preact/hooks";
import { address, post, remove, seg } from "../api/client";
import type { Job, LabRun, Named } from "../api/types";
import { Button } from "../parts/Button";
import { Check, Field, Input, Options, Select } from "../parts/Field";
import { JobProgress } from "../parts/JobProgress";
import { Asking, Empty, Trouble } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { type Column, Table } from "../parts/Table";
import { act } from "../state/action";
import { devices, jobs, noteJob } from "../state/fleet";
import { type Resource, useResource } from "../state/resource";
import { moment } from "../text/moment";
import { flash, freshName, namesOf } from "./lab/lists";

export function LabPage() {
  const runs = useResource<LabRun[]>("/lab/runs", 5000);
  const under = jobs.value.filter((job) => job.kind === "lab");
  const shown = under.filter(({ state }) => state === "running" || state === "failed");
  const running = under.filter(({ state }) => state === "running").length;
  const before = useRef(running);
  // A run that ends is one more to show.
  useEffect(() => {
    if (running < before.current) runs.again();
    before.current = running;
  }, [running, runs.again]);
  return (
    <>
      <Start runs={runs.value ?? []} onBegun={runs.again} />
      {shown.length > 0 && (
        <Panel title="Under way">
          <ul class="stack">
            {shown.map((job) => (
              <li key={job.id} class="stack">
                <JobProgress job={job} />
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {runs.error && runs.value === null ? (
        <Trouble of={runs.error} what="Runs" />
      ) : (
        <Runs runs={runs.value} change={runs.change} />
      )}
    </>
  );
}

function Start({ runs, onBegun }: { runs: readonly LabRun[]; onBegun: () => void }) {
  const protocols = useResource<Named[]>("/lab/protocols");
  const profiles = useResource<Named[]>("/lab/profiles");
  const [asked, setAsked] = useState<string | null>(null);
  const [target, setTarget] = useState<string | null>(null);
  const [scale, setScale] = useState("");
  const [full, setFull] = useState(false);
  const [name, setName] = useState("");
  const [typed, setTyped] = useState("");
  const protocol = asked ?? protocols.value?.[0]?.name ?? "";
  const device = target ?? flash(profiles.value)[0]?.name ?? "";
  const attached =
    devices.value.some((one) => one.name === device) && !profiles.value?.some((one) => one.name === device);
  const about = protocols.value?.find((one) => one.name === protocol)?.description;
  const fallback = freshName(protocol, namesOf(runs));
  const begin = async () => {
    const body: Record<string, unknown> = { protocol, device, name: name.trim() || fallback, full };
    if (scale.trim() !== "") body.scale = Number(scale);
    if (attached) body.confirm = typed;
    const begun = await act(`${protocol} has begun`, async () => noteJob(await post<Job>("/lab/runs", body)));
    if (begun) {
      setName("");
      setTyped("");
      onBegun();
    }
  };
  return (
    <Panel
      title="Start a protocol"
      aside={
        <span class="muted small">on the model of a card, in virtual time, or on an attached device</span>
      }
      onSubmit={begin}
    >
      {protocols.error && <Trouble of={protocols.error} what="Protocols" />}
      <div class="fields">
        <Select label="Protocol" value={protocol} of={namesOf(protocols.value)} onSet={setAsked} />
        <Field label="Device">
          {(id) => (
            <select id={id} value={device} onChange={(event) => setTarget(event.currentTarget.value)}>
              <optgroup label="Models">
                <Options of={namesOf(profiles.value)} />
              </optgroup>
              <optgroup label="Attached devices, which are overwritten">
                <Options of={namesOf(devices.value)} />
              </optgroup>
            </select>
          )}
        </Field>
        <Input
          label="So many times smaller"
          type="number"
          min={1}
          placeholder="as the protocol says"
          value={scale}
          onSet={setScale}
        />
        <Input label="Name of the run" placeholder={fallback} value={name} onSet={setName} />
      </div>
      {about && <p class="muted">{about}</p>}
      {attached && (
        <Input
          label={
            <>
              Everything on <strong>{device}</strong> is overwritten. Type its name to confirm
            </>
          }
          autocomplete="off"
          value={typed}
          onSet={setTyped}
        />
      )}
      <div class="row end">
        <Check value={full} onSet={setFull}>
          Whole, with times and sizes as published
        </Check>
        <Button
          type="submit"
          class="primary"
          needs="operator"
          disabled={protocol === "" || device === "" || (attached && typed !== device)}
        >
          Start
        </Button>
      </div>
    </Panel>
  );
}

function Runs({ runs, change }: { runs: LabRun[] | null; change: Resource<LabRun[]>["change"] }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const choose = (name: string, on: boolean) => {
    const next = new Set(chosen);
    if (on) next.add(name);
    else next.delete(name);
    setChosen(next);
  };
  const drop = async (name: string) => {
    await change(`The run ${name} is gone`, () => remove(`/lab/runs/${seg(name)}`));
    choose(name, false);
  };
  if (runs === null) return <Asking />;
  const columns: Column<LabRun>[] = [
    {
      title: "Compare",
      spoken: true,
      cell: (run) => (
        <input
          type="checkbox"
          aria-label={`Compare ${run.name}`}
          disabled={!run.report}
          checked={chosen.has(run.name)}
          onChange={(event) => choose(run.name, event.currentTarget.checked)}
        />
      ),
    },
    { title: "Run", cell: ({ name }) => name },
    { title: "Protocol", labelled: true, cell: ({ protocol }) => protocol },
    { title: "When", cell: ({ made_ms }) => moment(made_ms) },
    {
      title: "Report",
      spoken: true,
      number: true,
      cell: ({ name, report }) => (
        <>
          {report && (
            <a href={address(`/lab/runs/${seg(name)}/report`)} target="_blank" rel="noopener">
              Report<span class="spoken"> of {name}</span>
            </a>
          )}
          <Button class="quiet" needs="operator" onClick={() => drop(name)} of={name}>
            Delete
          </Button>
        </>
      ),
    },
  ];
  const compared = [...chosen].map(encodeURIComponent).join(",");
  return (
    <Panel
      title="Runs"
      aside={
        <a
          class="button"
          target="_blank"
          rel="noopener"
          aria-disabled={chosen.size < 2}
          {...(chosen.size < 2 ? {} : { href: address(`/lab/compare?runs=${compared}`) })}
        >
          Compare {chosen.size > 1 ? chosen.size : "chosen"} runs
        </a>
      }
    >
      <Table
        class="cards"
        label="Table of runs"
        rows={runs}
        keyOf={({ name }) => name}
        columns={columns}
        empty={
          <Empty title="Nothing has been run yet">
            Start a protocol above; its report can be opened while others run.
          </Empty>
        }
      />
    </Panel>
  );
}
