import { useState } from "preact/hooks";
import { get, post } from "../api/client";
import type { Alert, Alerts } from "../api/types";
import { Dialog } from "../parts/Dialog";
import { Input } from "../parts/Field";
import { Empty, Trouble } from "../parts/Notice";
import { Scroll } from "../parts/Scroll";
import { State, severityTone } from "../parts/State";
import { Switches } from "../parts/Switches";
import { href } from "../route";
import { act } from "../state/action";
import { alerts } from "../state/fleet";
import { may } from "../state/link";
import { useResource } from "../state/resource";
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
    <section class="panel" aria-label="Active alerts">
      {alerts.value.length === 0 ? (
        <Empty title="No alert is active">
          Rules say when one is raised; each is switched on or off there.
        </Empty>
      ) : (
        <Table of={alerts.value} onAcknowledge={setAbout} />
      )}
      {about && <Acknowledge alert={about} onClose={() => setAbout(null)} />}
    </section>
  );
}

const PAGE = 100;

function Past() {
  const [older, setOlder] = useState<Alert[]>([]);
  const [ended, setEnded] = useState(false);
  const { value, error } = useResource<Alerts>(`/alerts/history?limit=${PAGE}`, 10_000);
  if (error && value === null) return <Trouble of={error} what="History" />;
  const newest = value?.alerts ?? [];
  const seen = new Set(newest.map((alert) => alert.id));
  const all = [...newest, ...older.filter((alert) => !seen.has(alert.id))];
  const more = async () => {
    const last = all[all.length - 1];
    if (!last) return;
    const { alerts } = await get<Alerts>(`/alerts/history?limit=${PAGE}&before=${last.id}`);
    setOlder([...older, ...alerts]);
    setEnded(alerts.length < PAGE);
  };
  return (
    <section class="panel" aria-label="Alerts that were">
      {all.length === 0 ? (
        <Empty title={value === null ? "Asking the service…" : "No alert was ever raised"} />
      ) : (
        <Table of={all} />
      )}
      {all.length >= PAGE && !ended && (
        <button type="button" onClick={() => void more()}>
          Older ones
        </button>
      )}
    </section>
  );
}

function Table({ of, onAcknowledge }: { of: readonly Alert[]; onAcknowledge?: (alert: Alert) => void }) {
  return (
    <Scroll label="Table of alerts">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Severity</th>
            <th scope="col">Device</th>
            <th scope="col">What</th>
            <th scope="col">Raised</th>
            <th scope="col">{onAcknowledge ? "Acknowledged" : "Cleared"}</th>
          </tr>
        </thead>
        <tbody>
          {of.map((alert) => (
            <tr key={alert.id}>
              <td>
                <State tone={severityTone(alert.severity)}>{alert.severity}</State>
              </td>
              <td>
                {alert.device ? (
                  <a href={href("live", alert.device)}>{alert.device}</a>
                ) : (
                  <span class="muted">service</span>
                )}
              </td>
              <td class="wrap">
                {alert.what}
                <br />
                <span class="muted small">{alert.rule}</span>
                {alert.note && <span class="muted small"> · {alert.note}</span>}
              </td>
              <td data-label="Raised">{moment(alert.raised_ms)}</td>
              <td>
                {onAcknowledge ? (
                  alert.acknowledged_ms ? (
                    <span class="muted">
                      {moment(alert.acknowledged_ms)} by {alert.acknowledged_by}
                    </span>
                  ) : (
                    <button type="button" disabled={!may("operator")} onClick={() => onAcknowledge(alert)}>
                      Acknowledge
                    </button>
                  )
                ) : alert.cleared_ms ? (
                  <>
                    {moment(alert.cleared_ms)}{" "}
                    <span class="muted small">after {span((alert.cleared_ms - alert.raised_ms) / 1000)}</span>
                  </>
                ) : (
                  <span class="badge warning">active</span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

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
