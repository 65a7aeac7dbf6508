import { useState } from "preact/hooks";
import type { Comparison, Rule, Severity } from "../../api/types";
import { Dialog } from "../../parts/Dialog";
import { devices } from "../../state/fleet";
import { metrics } from "../../state/telemetry";

interface Props {
  rule: Rule;
  /** Names that are taken, of a new rule; empty when one is changed. */
  taken: readonly string[];
  onClose: () => void;
  onSave: (rule: Rule) => void;
}

export function RuleDialog({ rule, taken, onClose, onSave }: Props) {
  const [draft, setDraft] = useState(rule);
  const fresh = rule.name === "";
  const change = (part: Partial<Rule>) => setDraft({ ...draft, ...part });
  const metric = metrics.value.find((known) => known.of === "device" && known.name === draft.metric);
  const clash = taken.includes(draft.name);
  return (
    <Dialog
      title={fresh ? "A new rule" : `Rule ${rule.name}`}
      onClose={onClose}
      onSubmit={() => onSave(draft)}
      actions={
        <button
          type="submit"
          class="primary"
          disabled={draft.name.trim() === "" || clash || !Number.isFinite(draft.threshold)}
        >
          Save
        </button>
      }
    >
      {fresh && (
        <div class="field">
          <label for="rule-name">Name</label>
          <input
            id="rule-name"
            type="text"
            value={draft.name}
            aria-invalid={clash}
            onInput={(event) => change({ name: event.currentTarget.value.trim() })}
          />
          {clash && <span class="hint">There is a rule of this name.</span>}
        </div>
      )}
      <div class="field">
        <label for="rule-meaning">Meaning</label>
        <input
          id="rule-meaning"
          type="text"
          value={draft.meaning}
          onInput={(event) => change({ meaning: event.currentTarget.value })}
        />
      </div>
      <div class="fields">
        <div class="field">
          <label for="rule-metric">Figure</label>
          <select
            id="rule-metric"
            value={draft.metric}
            disabled={draft.built_in}
            onChange={(event) => change({ metric: event.currentTarget.value })}
          >
            {!metric && <option value={draft.metric}>{draft.metric}</option>}
            {metrics.value
              .filter((known) => known.of === "device")
              .map((known) => (
                <option key={`${known.of} ${known.name}`} value={known.name}>
                  {known.label}
                </option>
              ))}
          </select>
        </div>
        <div class="field">
          <label for="rule-device">Of</label>
          <select
            id="rule-device"
            value={draft.device ?? ""}
            onChange={(event) => change({ device: event.currentTarget.value || null })}
          >
            <option value="">every device</option>
            {devices.value.map((device) => (
              <option key={device.name} value={device.name}>
                {device.name}
              </option>
            ))}
          </select>
        </div>
        <div class="field">
          <label for="rule-comparison">Is</label>
          <select
            id="rule-comparison"
            value={draft.comparison}
            disabled={draft.built_in}
            onChange={(event) => change({ comparison: event.currentTarget.value as Comparison })}
          >
            {[...new Set(["above", "below", draft.comparison])].map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </div>
        <Amount
          id="rule-threshold"
          label={`Threshold, ${metric?.unit ?? "number"}`}
          value={draft.threshold}
          onSet={(threshold) => change({ threshold: threshold ?? Number.NaN })}
        />
        <Amount
          id="rule-clear"
          label="Clears at (by default the same)"
          value={draft.clear ?? null}
          onSet={(clear) => change({ clear })}
        />
        <Amount
          id="rule-for"
          label="Lasting, seconds"
          value={draft.for_s}
          onSet={(for_s) => change({ for_s: Math.max(0, Math.round(for_s ?? 0)) })}
        />
        <div class="field">
          <label for="rule-severity">Severity</label>
          <select
            id="rule-severity"
            value={draft.severity}
            onChange={(event) => change({ severity: event.currentTarget.value as Severity })}
          >
            {["information", "warning", "critical"].map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </div>
      </div>
      {metric && <p class="muted small">{metric.meaning}</p>}
    </Dialog>
  );
}

function Amount({
  id,
  label,
  value,
  onSet,
}: {
  id: string;
  label: string;
  value: number | null;
  onSet: (value: number | null) => void;
}) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="number"
        step="any"
        value={value === null || Number.isNaN(value) ? "" : value}
        onInput={(event) => {
          const text = event.currentTarget.value;
          onSet(text === "" ? null : Number(text));
        }}
      />
    </div>
  );
}
