import { useState } from "preact/hooks";
import type { Comparison, Rule } from "../../api/types";
import { Dialog } from "../../parts/Dialog";
import { Input, Select } from "../../parts/Field";
import { devices } from "../../state/fleet";
import { metrics } from "../../state/telemetry";
import { SEVERITIES } from "./severity";

interface Props {
  rule: Rule;
  /** Names that are taken, of a new rule; empty when one is changed. */
  taken: readonly string[];
  onClose: () => void;
  onSave: (rule: Rule) => Promise<boolean>;
}

export function RuleDialog({ rule, taken, onClose, onSave }: Props) {
  const [draft, setDraft] = useState(rule);
  const fresh = rule.name === "";
  const change = (part: Partial<Rule>) => setDraft({ ...draft, ...part });
  const known = metrics.value.filter(({ of }) => of === "device");
  const metric = known.find(({ name }) => name === draft.metric);
  const clash = taken.includes(draft.name);
  return (
    <Dialog
      title={fresh ? "A new rule" : `Rule ${rule.name}`}
      onClose={onClose}
      submit={{
        label: "Save",
        ready: draft.name.trim() !== "" && !clash && Number.isFinite(draft.threshold),
        work: () => onSave(draft),
      }}
    >
      {fresh && (
        <Input
          label="Name"
          value={draft.name}
          aria-invalid={clash}
          hint={clash && "There is a rule of this name."}
          onSet={(name) => change({ name: name.trim() })}
        />
      )}
      <Input label="Meaning" value={draft.meaning} onSet={(meaning) => change({ meaning })} />
      <div class="fields">
        <Select
          label="Figure"
          value={draft.metric}
          of={[...new Set([...known.map(({ name }) => name), draft.metric])]}
          say={(name) => known.find((one) => one.name === name)?.label ?? name}
          disabled={draft.built_in}
          onSet={(metric) => change({ metric })}
        />
        <Select
          label="Of"
          value={draft.device ?? ""}
          of={["", ...devices.value.map(({ name }) => name)]}
          say={(name) => name || "every device"}
          onSet={(device) => change({ device: device || null })}
        />
        <Select
          label="Is"
          value={draft.comparison}
          of={[...new Set<Comparison>(["above", "below", draft.comparison])]}
          disabled={draft.built_in}
          onSet={(comparison) => change({ comparison })}
        />
        <Amount
          label={`Threshold, ${metric?.unit ?? "number"}`}
          value={draft.threshold}
          onSet={(threshold) => change({ threshold: threshold ?? Number.NaN })}
        />
        <Amount
          label="Clears at (by default the same)"
          blame={/^clear: /}
          value={draft.clear ?? null}
          onSet={(clear) => change({ clear })}
        />
        <Amount
          label="Lasting, seconds"
          blame={/ for_s: /}
          value={draft.for_s}
          onSet={(for_s) => change({ for_s: Math.max(0, Math.round(for_s ?? 0)) })}
        />
        <Select
          label="Severity"
          value={draft.severity}
          of={SEVERITIES}
          onSet={(severity) => change({ severity })}
        />
      </div>
      {metric && <p class="muted small">{metric.meaning}</p>}
    </Dialog>
  );
}

interface AmountProps {
  label: string;
  blame?: RegExp;
  value: number | null;
  onSet: (value: number | null) => void;
}

/** A number, or nothing. */
function Amount({ value, onSet, ...rest }: AmountProps) {
  return (
    <Input
      {...rest}
      type="number"
      step="any"
      value={value === null || Number.isNaN(value) ? "" : String(value)}
      onSet={(text) => onSet(text === "" ? null : Number(text))}
    />
  );
}
