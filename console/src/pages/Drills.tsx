import { useState } from "preact/hooks";
import { patch, post, remove, seg } from "../api/client";
import type { Device, Drills, Event } from "../api/types";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { EventList } from "../parts/EventList";
import { Check, Input, Select } from "../parts/Field";
import { Notice, Trouble } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { act } from "../state/action";
import { device as find } from "../state/fleet";
import { type Resource, useResource } from "../state/resource";
import { type Answers, type Ask, body, detailOf, KINDS, type Kind, nameOf } from "./drills/kinds";

export function DrillsPage({ subject }: { subject: string }) {
  const device = find(subject);
  const marked = device?.drill_device === true || device?.state === "powered-off";
  const path = `/devices/${seg(subject)}/drills`;
  const { value, error, change } = useResource<Drills>(marked ? path : null, 2000);
  if (device === null) return null;
  if (!marked) return <Unmarked device={device} />;
  const kinds = KINDS.filter(
    ({ on }) => on === "any" || (on === "emulated") === (device.emulation !== undefined),
  );
  const begin = (kind: Kind, answers: Answers) =>
    change(`${kind.title} on ${subject}`, () => post(path, body(kind, answers)));
  return (
    <>
      {error && value === null && <Trouble of={error} what="Drills" />}
      <Active device={device} drills={value} change={change} />
      <div class="grid stretch">
        {kinds.map((kind) => (
          <One
            key={kind.name}
            kind={kind}
            device={subject}
            off={value?.powered_off === true}
            onBegin={(answers) => begin(kind, answers)}
          />
        ))}
      </div>
      <Events device={subject} />
    </>
  );
}

function Unmarked({ device }: { device: Device }) {
  const asked = device.config?.drills === "on";
  const mark = () =>
    void act(`${device.name} is marked for drills`, () =>
      patch(`/devices/${seg(device.name)}/config`, { drills: "on" }),
    );
  return (
    <Panel label="Drills" title={`${device.name} is not marked for drills`}>
      <p>
        Drills cut the power of a device, kill its dies and let its sectors rot, by command, so that one can
        see how programs take it. They are refused on every device that nobody has marked: its data may go.
      </p>
      {asked ? (
        <Notice>
          It was asked for and holds with the next attach: detach the device and attach it again.
        </Notice>
      ) : (
        <div class="row">
          <Button class="danger" needs="operator" disabled={device.config === undefined} onClick={mark}>
            Mark {device.name}: its data may go
          </Button>
          <span class="muted small">holds with the next attach</span>
        </div>
      )}
    </Panel>
  );
}

function Active({
  device,
  drills,
  change,
}: {
  device: Device;
  drills: Drills | null;
  change: Resource<Drills>["change"];
}) {
  const path = `/devices/${seg(device.name)}/drills`;
  const undo = (name: string) => change(`Ended: ${name}`, () => remove(`${path}/${seg(name)}`));
  const powerOn = () =>
    change(`The power of ${device.name} is on`, () => post(`/devices/${seg(device.name)}/power-on`));
  const on = drills?.drills ?? [];
  return (
    <Panel
      label="Drills that are on"
      title="On now"
      aside={
        on.length > 1 && (
          <Button needs="operator" onClick={() => undo("all")}>
            End all
          </Button>
        )
      }
    >
      {drills?.powered_off && (
        <Notice
          tone="critical"
          actions={
            <Button class="primary" needs="operator" onClick={powerOn}>
              Switch it on
            </Button>
          }
        >
          <strong>The power is off.</strong> {drills.said}
        </Notice>
      )}
      {on.length === 0 && !drills?.powered_off && <p class="muted">No drill is on.</p>}
      <ul class="stack">
        {on.map((drill) => (
          <li key={JSON.stringify(drill)} class="row">
            <span class="badge warning">{nameOf(drill)}</span>
            <span>{detailOf(drill)}</span>
            <Button class="push" needs="operator" onClick={() => undo(nameOf(drill))} of={nameOf(drill)}>
              End
            </Button>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

interface OneProps {
  kind: Kind;
  device: string;
  off: boolean;
  onBegin: (answers: Answers) => Promise<boolean>;
}

function One({ kind, device, off, onBegin }: OneProps) {
  const [answers, setAnswers] = useState<Answers>({});
  const [asking, setAsking] = useState(false);
  return (
    <Panel
      title={kind.title}
      aside={
        <Button type="submit" class="danger" needs="operator" disabled={off} of={kind.title}>
          Begin
        </Button>
      }
      onSubmit={() => setAsking(true)}
    >
      <p class="muted">{kind.what}</p>
      {kind.asks.length > 0 && (
        <div class="fields narrow">
          {kind.asks.map((ask) => (
            <Answer
              key={ask.name}
              ask={ask}
              value={answers[ask.name] ?? ask.value ?? ""}
              onSet={(value) => setAnswers({ ...answers, [ask.name]: value })}
            />
          ))}
        </div>
      )}
      {asking && (
        <Dialog
          title={`${kind.title} on ${device}`}
          onClose={() => setAsking(false)}
          submit={{ label: `Begin ${kind.title}`, danger: true, work: () => onBegin(answers) }}
        >
          <p>{kind.what}</p>
          <p>Clients of {device} feel it at once, and data that it holds may be lost.</p>
        </Dialog>
      )}
    </Panel>
  );
}

interface AnswerProps {
  ask: Ask;
  value: string | boolean;
  onSet: (value: string | boolean) => void;
}

function Answer({ ask, value, onSet }: AnswerProps) {
  if (ask.kind === "switch") {
    return (
      <Check value={value === true} onSet={onSet}>
        {ask.label}
      </Check>
    );
  }
  const field = { label: ask.label, value: String(value), onSet };
  if (ask.kind === "choice") return <Select {...field} of={ask.of ?? []} />;
  return <Input {...field} type="number" min={0} step="any" />;
}

function Events({ device }: { device: string }) {
  const { value } = useResource<{ events: Event[] }>(`/devices/${seg(device)}/events`, 3000);
  return (
    <Panel label="Events" title="What happened">
      <EventList events={[...(value?.events ?? [])].reverse().slice(0, 50)} />
    </Panel>
  );
}
