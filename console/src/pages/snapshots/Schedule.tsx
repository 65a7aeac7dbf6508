import { useState } from "preact/hooks";
import { put, seg } from "../../api/client";
import type { Schedule as Kept, Snapshots } from "../../api/types";
import { Button } from "../../parts/Button";
import { Input } from "../../parts/Field";
import { Notice } from "../../parts/Notice";
import { Panel } from "../../parts/Panel";
import type { Resource } from "../../state/resource";
import { ago } from "../../text/moment";

const PERIODS = [
  ["hourly", "Hours kept"],
  ["daily", "Days kept"],
  ["weekly", "Weeks kept"],
] as const;
type Keep = Record<(typeof PERIODS)[number][0], number>;
/** What is offered where there is none yet. */
const USUAL: Keep = { hourly: 24, daily: 7, weekly: 4 };
const NONE: Keep = { hourly: 0, daily: 0, weekly: 0 };

interface Props {
  device: string;
  schedule: Kept | null;
  change: Resource<Snapshots>["change"];
}

/** What the service makes and deletes by itself: shown, and changed. */
export function Schedule({ device, schedule, change }: Props) {
  const kept: Keep = { ...NONE, ...schedule?.keep };
  const [typed, setTyped] = useState<Partial<Record<keyof Keep, string>>>({});
  const shown = schedule ? kept : USUAL;
  const wanted = { ...shown };
  for (const [period] of PERIODS) {
    const text = typed[period];
    if (text !== undefined) wanted[period] = text.trim() === "" ? 0 : Number(text);
  }
  const counts = Object.values(wanted);
  const sound = counts.every((count) => Number.isInteger(count) && count >= 0 && count <= 1000);
  const changed = schedule === null || PERIODS.some(([period]) => wanted[period] !== kept[period]);
  const set = async (keep: Keep, said: string) => {
    if (await change(said, () => put(`/devices/${seg(device)}/snapshot-schedule`, keep))) setTyped({});
  };
  return (
    <Panel
      title="Schedule"
      aside={
        schedule && (
          <Button needs="operator" onClick={() => set(NONE, `The schedule of ${device} has ended`)}>
            End it
          </Button>
        )
      }
      onSubmit={() => void set(wanted, `The schedule of ${device} is set`)}
    >
      <p>
        {schedule
          ? `The service makes snapshots of ${device} by itself${schedule.last ? `, the last one ${ago(schedule.last * 1000)}` : ""}.`
          : `The service makes no snapshots of ${device} by itself yet.`}{" "}
        It keeps the first of each hour, of each day and of each week, by the clock of UTC, for as many of
        them as stand here. Snapshots that are held, renamed or made by hand stay.
      </p>
      {schedule?.failure && (
        <Notice tone="critical">
          <strong>There is no newer snapshot:</strong> {schedule.failure}
        </Notice>
      )}
      <div class="row">
        {PERIODS.map(([period, label]) => (
          <Input
            key={period}
            label={label}
            class="count"
            type="number"
            min={0}
            max={1000}
            step={1}
            value={typed[period] ?? String(shown[period])}
            onSet={(text) => setTyped({ ...typed, [period]: text })}
          />
        ))}
        <Button
          type="submit"
          class="bottom primary"
          needs="operator"
          disabled={!sound || !changed || counts.every((count) => count === 0)}
        >
          {schedule ? "Change it" : "Begin"}
        </Button>
      </div>
    </Panel>
  );
}
