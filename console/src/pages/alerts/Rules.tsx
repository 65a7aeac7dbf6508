import { useState } from "preact/hooks";
import { put, remove, seg } from "../../api/client";
import type { Rule } from "../../api/types";
import { Empty, Trouble } from "../../parts/Notice";
import { Scroll } from "../../parts/Scroll";
import { State, severityTone } from "../../parts/State";
import { may } from "../../state/link";
import { useResource } from "../../state/resource";
import { metrics } from "../../state/telemetry";
import { quantity, span } from "../../text/quantity";
import { RuleDialog } from "./RuleDialog";

/** What a rule says, in one line. */
export function sentence(rule: Rule): string {
  const metric = metrics.value.find((known) => known.of === "device" && known.name === rule.metric);
  const amount = (value: number) => quantity(metric?.unit ?? "count", value);
  const lasting = rule.for_s > 0 ? ` for ${span(rule.for_s)}` : "";
  const clears = rule.clear === null || rule.clear === undefined ? "" : `, until ${amount(rule.clear)}`;
  return `${metric?.label ?? rule.metric} ${rule.comparison} ${amount(rule.threshold)}${lasting}${clears}`;
}

const FRESH: Rule = {
  name: "",
  meaning: "",
  metric: "write_p99_us",
  device: null,
  comparison: "above",
  threshold: 10_000,
  clear: null,
  for_s: 10,
  severity: "warning",
  enabled: true,
  built_in: false,
};

export function Rules() {
  const { value, error, change } = useResource<Rule[]>("/alert-rules");
  const [edited, setEdited] = useState<Rule | null>(null);
  if (error && value === null) return <Trouble of={error} what="Rules" />;
  if (value === null) return <Empty title="Asking the service…" />;
  const locked = !may("administrator");
  const set = (rule: Rule, what: string) => change(what, () => put(`/alert-rules/${seg(rule.name)}`, rule));
  const drop = (rule: Rule) =>
    change(`The rule ${rule.name} is gone`, () => remove(`/alert-rules/${seg(rule.name)}`));
  return (
    <section class="panel" aria-label="Rules">
      <header>
        <h2>Rules</h2>
        <button type="button" disabled={locked} onClick={() => setEdited(FRESH)}>
          Add a rule
        </button>
      </header>
      <Scroll label="Table of rules">
        <table class="cards">
          <thead>
            <tr>
              <th scope="col">On</th>
              <th scope="col">Rule</th>
              <th scope="col">Raised when</th>
              <th scope="col">Of</th>
              <th scope="col">Severity</th>
              <th scope="col">
                <span class="spoken">Change</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {value.map((rule) => (
              <tr key={rule.name}>
                <td>
                  <input
                    type="checkbox"
                    aria-label={`${rule.name} is on`}
                    disabled={locked}
                    checked={rule.enabled}
                    onChange={(event) => {
                      const enabled = event.currentTarget.checked;
                      void set({ ...rule, enabled }, `${rule.name} is ${enabled ? "on" : "off"}`);
                    }}
                  />
                </td>
                <td>
                  {rule.name}
                  <br />
                  <span class="muted small">{rule.meaning}</span>
                </td>
                <td>{sentence(rule)}</td>
                <td data-label="Of">{rule.device ?? "every device"}</td>
                <td>
                  <State tone={severityTone(rule.severity)}>{rule.severity}</State>
                </td>
                <td class="number">
                  <button type="button" class="quiet" disabled={locked} onClick={() => setEdited(rule)}>
                    Change<span class="spoken"> {rule.name}</span>
                  </button>
                  {!rule.built_in && (
                    <button type="button" class="quiet" disabled={locked} onClick={() => void drop(rule)}>
                      Delete<span class="spoken"> {rule.name}</span>
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {edited && (
        <RuleDialog
          rule={edited}
          taken={edited === FRESH ? value.map((rule) => rule.name) : []}
          onClose={() => setEdited(null)}
          onSave={(rule) => set(rule, `The rule ${rule.name} is set`)}
        />
      )}
    </section>
  );
}
