import { useState } from "preact/hooks";
import type { Choice, Device } from "../api/types";
import { Button } from "../parts/Button";
import { Field } from "../parts/Field";
import { Figures } from "../parts/Figures";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { device as find, jobs } from "../state/fleet";
import { may } from "../state/link";
import { bytes, percent } from "../text/quantity";
import { bounds, capacityAt, maximumShare, OPTIONS, presentShare } from "./format/capacity";
import { Erase } from "./format/Erase";
import { FormatDialog } from "./format/FormatDialog";
import { Prediction, predictionOf } from "./format/Prediction";

export function FormatPage({ subject }: { subject: string }) {
  const device = find(subject);
  const [capacity, setCapacity] = useState("advertised");
  const [share, setShare] = useState(100);
  const [asking, setAsking] = useState(false);
  if (device === null) return null;

  // The newest, whoever asked for it and whichever page was shown since.
  const job = jobs.value.find((job) => job.kind === "prediction" && job.device === device.name) ?? null;
  const prediction = predictionOf(job);
  const predicted = prediction?.choices.find((choice) => choice.capacity === capacity) ?? null;
  const choose = (capacity: string, share: number) => {
    setCapacity(capacity);
    setShare(share);
  };
  return (
    <>
      <Present device={device} />
      <Panel label="Capacity" title="1. Choose a capacity">
        <Capacity device={device} capacity={capacity} share={share} onChoose={choose} />
      </Panel>
      <Prediction device={device} capacity={capacity} job={job} />
      <Panel label="Format" title="3. Format">
        <p>
          Everything on <strong>{device.name}</strong> is destroyed, and it is attached again with{" "}
          <strong>{bytes(((device.advertised_bytes ?? 0) * share) / 100)}</strong> ({capacity}). While clients
          are connected that is refused.
        </p>
        <Told predicted={predicted} />
        <div class="row">
          <Button class="danger" needs="administrator" onClick={() => setAsking(true)}>
            Format {device.name}…
          </Button>
          {!may("administrator") && <span class="muted small">This takes the role of an administrator.</span>}
        </div>
      </Panel>
      <Erase device={device} />
      {asking && (
        <FormatDialog
          device={device}
          capacity={capacity}
          predicted={predicted}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}

function Told({ predicted }: { predicted: Choice | null }) {
  if (predicted) return <Notice tone="ok">What this choice would do is predicted above.</Notice>;
  return (
    <Notice tone="warning">
      For this choice nothing has been predicted yet. Predict it first, to know before the data is gone.
    </Notice>
  );
}

function Present({ device }: { device: Device }) {
  return (
    <Panel label="Format now">
      <Figures
        of={[
          {
            label: "Now",
            value: bytes(device.bytes),
            note: `${presentShare(device) ?? "–"} % of the advertised capacity`,
          },
          {
            label: "Advertised",
            value: bytes(device.advertised_bytes),
            note: `${bytes(device.raw_bytes)} raw`,
          },
          { label: "Over-provisioning", value: percent(device.over_provisioning_percent) },
          { label: "Data held", value: bytes(device.mapped_bytes), note: "would be lost" },
          { label: "Clients", value: device.clients?.length ?? 0, note: "must have gone first" },
        ]}
      />
    </Panel>
  );
}

interface CapacityProps {
  device: Device;
  capacity: string;
  share: number;
  onChoose: (capacity: string, share: number) => void;
}

function Capacity({ device, capacity, share, onChoose }: CapacityProps) {
  const { least, most } = bounds(device);
  const size = (share: number) => bytes(((device.advertised_bytes ?? 0) * share) / 100);
  const above = (share: number) => {
    const host = ((device.advertised_bytes ?? 0) * share) / 100;
    return host > 0 ? percent(((device.raw_bytes ?? 0) / host - 1) * 100, 0) : "–";
  };
  return (
    <div class="stack">
      <div class="options" role="radiogroup" aria-label="Capacity">
        {OPTIONS.map((option) => {
          const reached = option.capacity === "maximum" ? maximumShare(device) : option.share;
          return (
            <label key={option.capacity} class={`option ${capacity === option.capacity ? "chosen" : ""}`}>
              <input
                type="radio"
                name="capacity"
                checked={capacity === option.capacity}
                onChange={() => onChoose(option.capacity, reached)}
              />
              <span>
                <strong>{option.title}</strong>
                <br />
                {size(reached)} <span class="muted small">· {above(reached)} over-provisioning</span>
                <br />
                <span class="muted small">{option.what}</span>
              </span>
            </label>
          );
        })}
      </div>
      <Field
        label={
          <>
            Or anything between: <strong>{Math.round(share)} %</strong> of the advertised capacity,{" "}
            {size(share)}, {above(share)} over-provisioning
          </>
        }
      >
        {(id) => (
          <input
            id={id}
            type="range"
            min={least}
            max={most}
            step={1}
            value={share}
            aria-valuetext={`${share} per cent, ${size(share)}`}
            onInput={(event) => {
              const next = Number(event.currentTarget.value);
              onChoose(capacityAt(next), next);
            }}
          />
        )}
      </Field>
    </div>
  );
}
