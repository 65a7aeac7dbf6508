import { useState } from "preact/hooks";
import { put, remove, seg } from "../../api/client";
import type { Rule } from "../../api/types";
import { Button } from "../../parts/Button";
import { Asking } from "../../parts/Notice";
import { Panel } from "../../parts/Panel";
import { State, severityTone } from "../../parts/State";
import { type Column, Table } from "../../parts/Table";
import { may } from "../../state/link";
import { useResource } from "../../state/resource";
import { metrics } from "../../state/telemetry";
import { sentence } from "../../text/rule";
import { RuleDialog } from "./RuleDialog";

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
  if (value === null) return <Asking error={error} what="Rules" />;
  const locked = !may("administrator");
  const set = (rule: Rule, what: string) => change(what, () => put(`/alert-rules/${seg(rule.name)}`, rule));
  const drop = (rule: Rule) =>
    change(`The rule ${rule.name} is gone`, () => remove(`/alert-rules/${seg(rule.name)}`));
  const columns: Column<Rule>[] = [
    {
      title: "On",
      cell: (rule) => (
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
      ),
    },
    {
      title: "Rule",
      cell: ({ name, meaning }) => (
        <>
          {name}
          <br />
          <span class="muted small">{meaning}</span>
        </>
      ),
    },
    { title: "Raised when", cell: (rule) => sentence(rule, metrics.value) },
    { title: "Of", labelled: true, cell: ({ device }) => device ?? "every device" },
    {
      title: "Severity",
      cell: ({ severity }) => <State tone={severityTone(severity)}>{severity}</State>,
    },
    {
      title: "Change",
      spoken: true,
      number: true,
      cell: (rule) => (
        <>
          <Button class="quiet" needs="administrator" onClick={() => setEdited(rule)} of={rule.name}>
            Change
          </Button>
          {!rule.built_in && (
            <Button class="quiet" needs="administrator" onClick={() => drop(rule)} of={rule.name}>
              Delete
            </Button>
          )}
        </>
      ),
    },
  ];
  return (
    <Panel
      title="Rules"
      aside={
        <Button needs="administrator" onClick={() => setEdited(FRESH)}>
          Add a rule
        </Button>
      }
    >
      <Table class="cards" label="Table of rules" rows={value} keyOf={({ name }) => name} columns={columns} />
      {edited && (
        <RuleDialog
          rule={edited}
          taken={edited === FRESH ? value.map((rule) => rule.name) : []}
          onClose={() => setEdited(null)}
          onSave={(rule) => set(rule, `The rule ${rule.name} is set`)}
        />
      )}
    </Panel>
  );
}
