import { useState } from "preact/hooks";
import { post } from "../../api/client";
import type { Choice, Device, Job, Named, Prediction as Predicted } from "../../api/types";
import { Select } from "../../parts/Field";
import { JobProgress } from "../../parts/JobProgress";
import { Notice, Trouble } from "../../parts/Notice";
import { Scroll } from "../../parts/Scroll";
import { act } from "../../state/action";
import { noteJob } from "../../state/fleet";
import { may } from "../../state/link";
import { useResource } from "../../state/resource";
import { bytes, micros, number, percent, quantity, span } from "../../text/quantity";
import { flash, namesOf } from "../lab/lists";
import { OPTIONS } from "./capacity";

interface Props {
  device: Device;
  capacity: string;
  job: Job | null;
  onJob: (id: number) => void;
}

const RECORDED = "recorded";

/** Runs the choices in virtual time, on what this device was asked lately or on a named workload. Nothing on the device changes. */
export function Prediction({ device, capacity, job, onJob }: Props) {
  const workloads = useResource<Named[]>("/lab/workloads");
  const profiles = useResource<Named[]>(device.profile ? null : "/lab/profiles");
  const [asked, setAsked] = useState<string | null>(null);
  const [chosenProfile, setProfile] = useState<string | null>(null);
  const workload = asked ?? workloads.value?.[0]?.name ?? RECORDED;
  const cards = flash(profiles.value);
  const profile = chosenProfile ?? cards[0]?.name ?? "";
  const start = async () => {
    const known = OPTIONS.map((option) => option.capacity);
    const capacities = known.includes(capacity) ? known : [...known, capacity];
    const body: Record<string, unknown> = { device: device.name, workload, capacities };
    if (!device.profile) body.profile = profile;
    await act("The prediction has begun", async () => {
      const begun = await post<Job>("/predictions", body);
      noteJob(begun);
      onJob(begun.id);
    });
  };
  const result = job?.state === "done" ? (job.result as unknown as Predicted) : null;
  return (
    <section class="panel" aria-label="Prediction">
      <header>
        <h2>2. See what it would do</h2>
        <span class="muted small">in virtual time; the device goes on as it is</span>
      </header>
      <div class="row">
        <Select
          label="Workload"
          value={workload}
          of={[RECORDED, ...namesOf(workloads.value)]}
          say={(name) => (name === RECORDED ? `what was recorded of ${device.name} last` : name)}
          onSet={setAsked}
        />
        {!device.profile && (
          <Select label="Modelled as" value={profile} of={namesOf(cards)} onSet={setProfile} />
        )}
        <button
          type="button"
          class="primary bottom"
          disabled={!may("operator") || job?.state === "running" || workload === ""}
          onClick={() => void start()}
        >
          Predict
        </button>
      </div>
      <p class="muted small">
        {workload === RECORDED
          ? "Recordings begin and end on the page Configure; the last one that came to its end is played."
          : workloads.value?.find((one) => one.name === workload)?.description}
      </p>
      {workloads.error && <Trouble of={workloads.error} what="Workloads" />}
      {job && job.state !== "done" && <JobProgress job={job} />}
      {result && <Choices prediction={result} chosen={capacity} />}
    </section>
  );
}

function Choices({ prediction, chosen }: { prediction: Predicted; chosen: string }) {
  const most = Math.max(1, ...prediction.choices.map((choice) => choice.iops ?? 0));
  return (
    <>
      <Scroll label="Choices">
        <table>
          <caption>
            {prediction.workload} on {prediction.profile}, modelled at 1/{number(prediction.scale)} of its
            size
          </caption>
          <thead>
            <tr>
              <th scope="col">Capacity</th>
              <th scope="col" class="number">
                Over-provisioning
              </th>
              <th scope="col">Steady-state IOPS</th>
              <th scope="col" class="number">
                p99
              </th>
              <th scope="col" class="number">
                p99.9
              </th>
              <th scope="col" class="number">
                Write amplification
              </th>
              <th scope="col" class="number">
                Lifetime
              </th>
            </tr>
          </thead>
          <tbody>
            {prediction.choices.map((choice) => (
              <Row key={choice.capacity} choice={choice} chosen={choice.capacity === chosen} most={most} />
            ))}
          </tbody>
        </table>
      </Scroll>
      {!prediction.choices.some((choice) => choice.capacity === chosen) && (
        <Notice>The capacity chosen now is not among these: predict again to see it.</Notice>
      )}
    </>
  );
}

function Row({ choice, chosen, most }: { choice: Choice; chosen: boolean; most: number }) {
  return (
    <tr class={chosen ? "chosen" : ""} aria-current={chosen ? "true" : undefined}>
      <th scope="row">
        {chosen && "▸ "}
        {choice.capacity} <span class="muted small">{bytes(choice.bytes)}</span>
      </th>
      <td class="number">{percent(choice.over_provisioning_percent, 0)}</td>
      <td>
        <div class="bar-cell">
          <i style={{ width: `${((choice.iops ?? 0) / most) * 100}%` }} aria-hidden="true" />
          <span>{number(choice.iops)}</span>
        </div>
      </td>
      <td class="number">{micros(choice.p99_us)}</td>
      <td class="number">{micros(choice.p999_us)}</td>
      <td class="number">{quantity("ratio", choice.write_amplification)}</td>
      <td class="number">
        {choice.lifetime_days ? span(choice.lifetime_days * 86_400) : "–"}
        {choice.lifetime_written_bytes ? (
          <span class="muted small"> {bytes(choice.lifetime_written_bytes)}</span>
        ) : null}
      </td>
    </tr>
  );
}
