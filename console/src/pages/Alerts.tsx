import { useState } from "preact/hooks";
import { post } from "../api/client";
import type { Alert, Alerts } from "../api/types";
import { Button } from "../parts/Button";
import { Cure } from "../parts/Cure";
import { Dialog } from "../parts/Dialog";
import { Input } from "../parts/Field";
import { Empty, Trouble } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { State, severityTone } from "../parts/State";
import { Switches } from "../parts/Switches";
import { type Column, Table } from "../parts/Table";
import { href } from "../route";
import { act } from "../state/action";
import { alerts } from "../state/fleet";
import { usePaged } from "../state/paged";
import { moment } from "../text/moment";
import { span } from "../text/quantity";
import { Notifications } from "./alerts/Notifications";
import { Rules } from "./alerts/Rules";

type Tab = "active" | "history" | "rules" | "notifications";

export function AlertsPage() {
  const [tab, setTab] = useState<Tab>("active");
  return (
    <>
      <div class="row">
        <Switches<Tab>
          label="What is shown"
          value={tab}
          of={[
            { value: "active", label: `Active (${alerts.value.length})` },
            { value: "history", label: "History" },
            { value: "rules", label: "Rules" },
            { value: "notifications", label: "Notifications" },
          ]}
          onChange={setTab}
        />
      </div>
      {tab === "active" && <Active />}
      {tab === "history" && <Past />}
      {tab === "rules" && <Rules />}
      {tab === "notifications" && <Notifications />}
    </>
  );
}

function Active() {
  const [about, setAbout] = useState<Alert | null>(null);
  return (
    <Panel label="Active alerts">
      <Table
        class="cards"
        label="Table of alerts"
        rows={alerts.value}
        keyOf={({ id }) => id}
        columns={[...COLUMNS, acknowledged(setAbout)]}
        empty={
          <Empty title="No alert is active">
            Rules say when one is raised; each is switched on or off there.
          </Empty>
        }
      />
      {about && <Acknowledge alert={about} onClose={() => setAbout(null)} />}
    </Panel>
  );
}

function Past() {
  const { items, error, older } = usePaged<Alerts, Alert>(
    "/alerts/history",
    10_000,
    ({ alerts }) => alerts,
    ({ id }) => id,
  );
  if (error && items === null) return <Trouble of={error} what="History" />;
  return (
    <Panel label="Alerts that were">
      <Table
        class="cards"
        label="Table of alerts"
        rows={items}
        keyOf={({ id }) => id}
        columns={[...COLUMNS, CLEARED]}
        empty={<Empty title="No alert was ever raised" />}
      />
      {older && <Button onClick={older}>Older ones</Button>}
    </Panel>
  );
}

const COLUMNS: readonly Column<Alert>[] = [
  {
    title: "Severity",
    cell: ({ severity }) => <State tone={severityTone(severity)}>{severity}</State>,
  },
  {
    title: "Device",
    cell: ({ device }) =>
      device ? <a href={href("live", device)}>{device}</a> : <span class="muted">service</span>,
  },
  {
    title: "What",
    class: "wrap",
    cell: (alert) => {
      const { what, rule, note, sent = [] } = alert;
      return (
        <>
          {what}
          <br />
          <Cure of={alert} /> <span class="muted small">{rule}</span>
          {note && <span class="muted small"> · {note}</span>}
          {sent.map(
            ({ to, error }, position) =>
              error && (
                <div key={position} class="small">
                  Not sent to {to}: {error}
                </div>
              ),
          )}
        </>
      );
    },
  },
  { title: "Raised", labelled: true, cell: ({ raised_ms }) => moment(raised_ms) },
];

const acknowledged = (onAcknowledge: (alert: Alert) => void): Column<Alert> => ({
  title: "Acknowledged",
  cell: (alert) =>
    alert.acknowledged_ms ? (
      <span class="muted">
        {moment(alert.acknowledged_ms)} by {alert.acknowledged_by}
      </span>
    ) : (
      <Button needs="operator" onClick={() => onAcknowledge(alert)}>
        Acknowledge
      </Button>
    ),
});

const CLEARED: Column<Alert> = {
  title: "Cleared",
  cell: ({ cleared_ms, raised_ms }) =>
    cleared_ms ? (
      <>
        {moment(cleared_ms)} <span class="muted small">after {span((cleared_ms - raised_ms) / 1000)}</span>
      </>
    ) : (
      <span class="badge warning">active</span>
    ),
};

function Acknowledge({ alert, onClose }: { alert: Alert; onClose: () => void }) {
  const [note, setNote] = useState("");
  const acknowledge = () =>
    act("Acknowledged", () =>
      post(`/alerts/${alert.id}/acknowledge`, note.trim() ? { note: note.trim() } : {}),
    );
  return (
    <Dialog title="Acknowledge" onClose={onClose} submit={{ label: "Acknowledge", work: acknowledge }}>
      <p class="wrap">{alert.what}</p>
      <Input label="Note (for whoever looks next)" value={note} onSet={setNote} />
    </Dialog>
  );
}
