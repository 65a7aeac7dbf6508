import { useEffect, useState } from "preact/hooks";
import { address, post, remove, seg } from "../api/client";
import type { Job, Run } from "../api/types";
import { JobProgress } from "../parts/JobProgress";
import { Empty, Trouble } from "../parts/Notice";
import { Scroll } from "../parts/Scroll";
import { act } from "../state/action";
import { jobs, noteJob } from "../state/fleet";
import { may } from "../state/link";
import { useResource } from "../state/resource";
import { moment } from "../text/moment";
import { aboutOf, type Named, nameOf } from "./lab/lists";

export function LabPage() {
  const runs = useResource<Run[]>("/lab/runs", 5000);
  const under = jobs.value.filter((job) => job.kind.startsWith("lab"));
  const ended = under.filter((job) => job.state !== "running").length;
  // A run that ends is one more to show.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the number of ended runs is what asks again.
  useEffect(() => runs.again(), [ended]);
  return (
    <>
      <Start onBegun={runs.again} />
      {under.some((job) => job.state === "running" || job.state === "failed") && (
        <section class="panel" aria-label="Under way">
          <header>
            <h2>Under way</h2>
          </header>
          <ul class="stack">
            {under
              .filter((job) => job.state === "running" || job.state === "failed")
              .map((job) => (
                <li key={job.id} class="stack">
                  <JobProgress job={job} />
                </li>
              ))}
          </ul>
        </section>
      )}
      {runs.error && runs.value === null ? (
        <Trouble of={runs.error} what="Runs" />
      ) : (
        <Runs runs={runs.value} onChange={runs.again} />
      )}
    </>
  );
}

function Start({ onBegun }: { onBegun: () => void }) {
  const protocols = useResource<Named[]>("/lab/protocols");
  const profiles = useResource<Named[]>("/lab/profiles");
  const [protocol, setProtocol] = useState("");
  const [profile, setProfile] = useState("");
  const [scale, setScale] = useState("64");
  const [name, setName] = useState("");
  const first = (list: Named[] | null) => (list?.[0] ? nameOf(list[0]) : "");
  const chosenProtocol = protocol || first(protocols.value);
  const chosenProfile = profile || first(profiles.value);
  const about = protocols.value?.find((one) => nameOf(one) === chosenProtocol);
  const begin = async () => {
    const body: Record<string, unknown> = { protocol: chosenProtocol, device: chosenProfile };
    if (scale.trim() !== "") body.scale = Number(scale);
    if (name.trim() !== "") body.name = name.trim();
    const job = await act(`${chosenProtocol} has begun`, () => post<Job>("/lab/runs", body));
    if (job) {
      noteJob(job);
      setName("");
      onBegun();
    }
  };
  return (
    <form
      class="panel"
      aria-label="Start a protocol"
      onSubmit={(event) => {
        event.preventDefault();
        void begin();
      }}
    >
      <header>
        <h2>Start a protocol</h2>
        <span class="muted small">on a model of a card, in virtual time</span>
      </header>
      {protocols.error && <Trouble of={protocols.error} what="Protocols" />}
      <div class="fields">
        <List
          id="lab-protocol"
          label="Protocol"
          of={protocols.value}
          value={chosenProtocol}
          onSet={setProtocol}
        />
        <List id="lab-profile" label="Device" of={profiles.value} value={chosenProfile} onSet={setProfile} />
        <div class="field">
          <label for="lab-scale">So many times smaller</label>
          <input
            id="lab-scale"
            type="number"
            min={1}
            value={scale}
            onInput={(event) => setScale(event.currentTarget.value)}
          />
        </div>
        <div class="field">
          <label for="lab-name">Name of the run</label>
          <input
            id="lab-name"
            type="text"
            placeholder="by default after the protocol"
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </div>
      </div>
      {about && aboutOf(about) && <p class="muted">{aboutOf(about)}</p>}
      <div class="row end">
        <button
          type="submit"
          class="primary"
          disabled={!may("operator") || chosenProtocol === "" || chosenProfile === ""}
        >
          Start
        </button>
      </div>
    </form>
  );
}

function List(props: {
  id: string;
  label: string;
  of: Named[] | null;
  value: string;
  onSet: (value: string) => void;
}) {
  return (
    <div class="field">
      <label for={props.id}>{props.label}</label>
      <select id={props.id} value={props.value} onChange={(event) => props.onSet(event.currentTarget.value)}>
        {props.of?.map((one) => (
          <option key={nameOf(one)} value={nameOf(one)}>
            {nameOf(one)}
          </option>
        ))}
      </select>
    </div>
  );
}

function Runs({ runs, onChange }: { runs: Run[] | null; onChange: () => void }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [shown, setShown] = useState<string | null>(null);
  const choose = (name: string, on: boolean) => {
    const next = new Set(chosen);
    if (on) next.add(name);
    else next.delete(name);
    setChosen(next);
  };
  const drop = async (name: string) => {
    await act(`The run ${name} is gone`, () => remove(`/lab/runs/${seg(name)}`));
    choose(name, false);
    if (shown === name) setShown(null);
    onChange();
  };
  if (runs === null) return <Empty title="Asking the service…" />;
  const compared = [...chosen].map(encodeURIComponent).join(",");
  return (
    <section class="panel" aria-label="Runs">
      <header>
        <h2>Runs</h2>
        <a
          class="button"
          target="_blank"
          rel="noopener"
          aria-disabled={chosen.size < 2}
          {...(chosen.size < 2 ? {} : { href: address(`/lab/compare?runs=${compared}`) })}
        >
          Compare {chosen.size > 1 ? chosen.size : "chosen"} runs
        </a>
      </header>
      {runs.length === 0 ? (
        <Empty title="Nothing has been run yet">
          Start a protocol above; its report can be opened while others run.
        </Empty>
      ) : (
        <Scroll label="Table of runs">
          <table class="cards">
            <thead>
              <tr>
                <th scope="col">
                  <span class="spoken">Compare</span>
                </th>
                <th scope="col">Run</th>
                <th scope="col">Protocol</th>
                <th scope="col">Device</th>
                <th scope="col">When</th>
                <th scope="col">State</th>
                <th scope="col">
                  <span class="spoken">Report</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {runs.map((run) => (
                <tr key={run.name}>
                  <td>
                    <input
                      type="checkbox"
                      aria-label={`Compare ${run.name}`}
                      disabled={!finished(run)}
                      checked={chosen.has(run.name)}
                      onChange={(event) => choose(run.name, event.currentTarget.checked)}
                    />
                  </td>
                  <td>{run.name}</td>
                  <td data-label="Protocol">{text(run.protocol)}</td>
                  <td data-label="Device">{text(run.device)}</td>
                  <td>{typeof run.began_ms === "number" ? moment(run.began_ms) : "–"}</td>
                  <td>{text(run.state)}</td>
                  <td class="number">
                    {finished(run) && (
                      <a href={address(`/lab/runs/${seg(run.name)}/report`)} target="_blank" rel="noopener">
                        Report<span class="spoken"> of {run.name}</span>
                      </a>
                    )}
                    <button
                      type="button"
                      class="quiet"
                      disabled={!may("operator")}
                      onClick={() => void drop(run.name)}
                    >
                      Delete<span class="spoken"> {run.name}</span>
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </section>
  );
}

const text = (value: unknown) => (value === undefined || value === null ? "–" : String(value));
const finished = (run: Run) => run.state === undefined || run.state === "done";
