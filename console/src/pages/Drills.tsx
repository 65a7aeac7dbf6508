import { useState } from "preact/hooks";
import { patch, post, remove, seg } from "../api/client";
import type { Device, Drills, Event } from "../api/types";
import { EventList } from "../parts/EventList";
import { Check, Input, Select } from "../parts/Field";
import { Form } from "../parts/Form";
import { Notice, Trouble } from "../parts/Notice";
import { act } from "../state/action";
import { device as find } from "../state/fleet";
import { may } from "../state/link";
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
            off={value?.powered_off === true}
            onBegin={(answers) => void begin(kind, answers)}
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
    <section class="panel" aria-label="Drills">
      <header>
        <h2>{device.name} is not marked for drills</h2>
      </header>
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
          <button
            type="button"
            class="danger"
            disabled={!may("operator") || device.config === undefined}
            onClick={mark}
          >
            Mark {device.name}: its data may go
          </button>
          <span class="muted small">holds with the next attach</span>
        </div>
      )}
    </section>
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
    <section class="panel" aria-label="Drills that are on">
      <header>
        <h2>On now</h2>
        {on.length > 1 && (
          <button type="button" disabled={!may("operator")} onClick={() => void undo("all")}>
            End all
          </button>
        )}
      </header>
      {drills?.powered_off && (
        <Notice
          tone="critical"
          actions={
            <button type="button" class="primary" disabled={!may("operator")} onClick={() => void powerOn()}>
              Switch it on
            </button>
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
            <button
              type="button"
              class="push"
              disabled={!may("operator")}
              onClick={() => void undo(nameOf(drill))}
            >
              End<span class="spoken"> {nameOf(drill)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function One({ kind, off, onBegin }: { kind: Kind; off: boolean; onBegin: (answers: Answers) => void }) {
  const [answers, setAnswers] = useState<Answers>({});
  return (
    <Form class="panel" aria-label={kind.title} onSubmit={() => onBegin(answers)}>
      <header>
        <h2>{kind.title}</h2>
        <button type="submit" class="danger" disabled={off || !may("operator")}>
          Begin<span class="spoken"> {kind.title}</span>
        </button>
      </header>
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
    </Form>
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
    <section class="panel" aria-label="Events">
      <header>
        <h2>What happened</h2>
      </header>
      <EventList events={[...(value?.events ?? [])].reverse().slice(0, 50)} />
    </section>
  );
}
