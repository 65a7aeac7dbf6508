import { useState } from "preact/hooks";
import { post } from "../../api/client";
import type { Choice, Device, Job, Named, Prediction as Predicted } from "../../api/types";
import { Button } from "../../parts/Button";
import { Select } from "../../parts/Field";
import { JobProgress } from "../../parts/JobProgress";
import { Notice, Trouble } from "../../parts/Notice";
import { Panel } from "../../parts/Panel";
import { type Column, Table } from "../../parts/Table";
import { act } from "../../state/action";
import { noteJob } from "../../state/fleet";
import { useResource } from "../../state/resource";
import { bytes, micros, number, percent, quantity, span } from "../../text/quantity";
import { namesOf } from "../lab/lists";
import { OPTIONS } from "./capacity";

interface Props {
  device: Device;
  capacity: string;
  /** The last prediction for this device. */
  job: Job | null;
}

const RECORDED = "recorded";

/** What is asked for at first: the capacity decides of random writes, above all. */
const USUAL = "random-write-4k";

/** What came of a prediction that has come to its end. */
export function predictionOf(job: Job | null): Predicted | null {
  const result = job?.kind === "prediction" && job.state === "done" ? job.result : null;
  return typeof result === "object" && result !== null && "choices" in result ? result : null;
}

/** Runs the choices in virtual time, on what this device was asked lately or on a named workload. Nothing on the device changes. Of a device
 *  on files or disks only what the layer does is known: how fast it is, and how long it lives, its store decides. */
export function Prediction({ device, capacity, job }: Props) {
  const workloads = useResource<Named[]>("/lab/workloads");
  const [asked, setAsked] = useState<string | null>(null);
  const known = namesOf(workloads.value);
  // Before they are there nothing is chosen: a recording, which there may not be, is asked for only where that is meant.
  const coming = workloads.value === null && workloads.error === null;
  const usual = known.includes(USUAL) ? USUAL : (known[0] ?? RECORDED);
  const workload = asked ?? (coming ? "" : usual);
  const start = async () => {
    const offered = OPTIONS.map((option) => option.capacity);
    const capacities = offered.includes(capacity) ? offered : [...offered, capacity];
    const body = { device: device.name, workload, capacities };
    await act("The prediction has begun", async () => noteJob(await post<Job>("/predictions", body)));
  };
  const result = predictionOf(job);
  return (
    <Panel
      label="Prediction"
      title="2. See what it would do"
      aside={<span class="muted small">in virtual time; the device goes on as it is</span>}
    >
      <div class="row">
        <Select
          label="Workload"
          value={workload}
          of={coming ? [] : [RECORDED, ...known]}
          say={(name) => (name === RECORDED ? `what was recorded of ${device.name} last` : name)}
          onSet={setAsked}
        />
        <Button
          class="primary bottom"
          needs="operator"
          disabled={job?.state === "running" || workload === ""}
          onClick={start}
        >
          Predict
        </Button>
      </div>
      <p class="muted small">
        {workload === RECORDED
          ? "Recordings begin and end on the page Configure; the last one that came to its end is played."
          : workloads.value?.find((one) => one.name === workload)?.description}
      </p>
      {workloads.error && <Trouble of={workloads.error} what="Workloads" />}
      {job && job.state !== "done" && <JobProgress job={job} />}
      {result && <Choices prediction={result} chosen={capacity} />}
    </Panel>
  );
}

function spread({ p99_us, p99_least_us, p99_most_us }: Choice) {
  const differs = p99_least_us && p99_most_us && p99_most_us > p99_least_us * 1.02;
  return (
    <>
      {micros(p99_us)}
      {differs && (
        <span class="muted small">
          {" "}
          {micros(p99_least_us)} to {micros(p99_most_us)}
        </span>
      )}
    </>
  );
}

function Choices({ prediction, chosen }: { prediction: Predicted; chosen: string }) {
  const { choices, workload, profile, scale, lifetime_bytes_per_s } = prediction;
  const most = Math.max(1, ...choices.map((choice) => choice.iops ?? 0));
  // Nothing is said of rates where the store decides them.
  const timed = choices.some(({ iops }) => iops !== null && iops !== undefined);
  const isChosen = (choice: Choice) => choice.capacity === chosen;
  const columns: Column<Choice>[] = [
    {
      title: "Capacity",
      head: true,
      cell: (choice) => (
        <>
          {isChosen(choice) && "▸ "}
          {choice.capacity} <span class="muted small">{bytes(choice.bytes)}</span>
        </>
      ),
    },
    {
      title: "Over-provisioning",
      number: true,
      labelled: true,
      cell: (choice) => percent(choice.over_provisioning_percent, 0),
    },
  ];
  const rates: Column<Choice>[] = [
    {
      title: "Steady-state IOPS",
      labelled: true,
      cell: ({ iops }) => (
        <div class="bar-cell">
          <i style={{ width: `${((iops ?? 0) / most) * 100}%` }} aria-hidden="true" />
          <span>{number(iops)}</span>
        </div>
      ),
    },
    { title: "p99", number: true, labelled: true, cell: spread },
    { title: "p99.9", number: true, labelled: true, cell: ({ p999_us }) => micros(p999_us) },
  ];
  const writes: Column<Choice>[] = [
    {
      title: "Write amplification",
      number: true,
      labelled: true,
      cell: ({ write_amplification }) => quantity("ratio", write_amplification),
    },
  ];
  const wear: Column<Choice>[] = [
    {
      title: "Lifetime",
      number: true,
      labelled: true,
      cell: ({ lifetime_days, lifetime_written_bytes }) => (
        <>
          {lifetime_days ? span(lifetime_days * 86_400) : "–"}
          {lifetime_written_bytes ? <span class="muted small"> {bytes(lifetime_written_bytes)}</span> : null}
        </>
      ),
    },
  ];
  return (
    <>
      <Table
        label="Choices"
        class="cards"
        caption={
          profile
            ? `${workload} on ${profile}, modelled at 1/${number(scale)} of its size`
            : `${workload} on this device's layer, modelled`
        }
        rows={choices}
        keyOf={({ capacity }) => capacity}
        columns={timed ? [...columns, ...rates, ...writes, ...wear] : [...columns, ...writes]}
        chosen={isChosen}
      />
      {timed ? (
        <p class="muted small">
          p99 of the whole run, and between which values it lay from second to second.
          {lifetime_bytes_per_s &&
            ` Lifetimes are compared at one rate, ${bytes(lifetime_bytes_per_s)}/s without a pause, which each of the choices sustains.`}
        </p>
      ) : (
        <p class="muted small">
          How fast it is, and how long the media live, depends on the files or disks underneath: neither is
          predicted. Less write amplification leaves more of what they can do to the host.
        </p>
      )}
      {!choices.some(isChosen) && (
        <Notice>The capacity chosen now is not among these: predict again to see it.</Notice>
      )}
    </>
  );
}
