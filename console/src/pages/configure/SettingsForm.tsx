import { useState } from "preact/hooks";
import { patch, seg } from "../../api/client";
import { Button } from "../../parts/Button";
import { Options } from "../../parts/Field";
import { Form } from "../../parts/Form";
import { act } from "../../state/action";
import { may } from "../../state/link";
import { settingOf } from "./settings";

/** Every setting of the device, each set as soon as it is changed. */
export function SettingsForm({ device, config }: { device: string; config: Record<string, string> }) {
  const set = (name: string, value: string) =>
    act(`${device}: ${name} is ${value}`, () => patch(`/devices/${seg(device)}/config`, { [name]: value }));
  return (
    <div class="settings">
      {Object.entries(config).map(([name, value]) => (
        <One key={name} name={name} value={value} onSet={(next) => void set(name, next)} />
      ))}
    </div>
  );
}

function One({ name, value, onSet }: { name: string; value: string; onSet: (value: string) => void }) {
  const { title, what, control } = settingOf(name, value);
  const id = `setting-${name}`;
  const locked = !may("operator");
  return (
    <div class="setting">
      <div>
        <label for={id}>
          <strong>{title}</strong>
        </label>
        {what && <p class="muted small">{what}</p>}
      </div>
      {control.kind === "switch" && (
        <label class="check">
          <input
            id={id}
            type="checkbox"
            disabled={locked}
            checked={value === "on"}
            onChange={(event) => onSet(event.currentTarget.checked ? "on" : "off")}
          />
          <span aria-hidden="true">{value}</span>
        </label>
      )}
      {control.kind === "choice" && (
        <select
          id={id}
          disabled={locked}
          value={value}
          onChange={(event) => onSet(event.currentTarget.value)}
        >
          <Options of={[...new Set([...control.of, value])]} />
        </select>
      )}
      {control.kind === "text" && (
        <Text
          id={id}
          value={value}
          locked={locked}
          {...(control.hint ? { hint: control.hint } : {})}
          onSet={onSet}
        />
      )}
    </div>
  );
}

function Text(props: {
  id: string;
  value: string;
  locked: boolean;
  hint?: string;
  onSet: (value: string) => void;
}) {
  const { id, value, locked, hint, onSet } = props;
  const [draft, setDraft] = useState<string | null>(null);
  return (
    <Form
      class="row"
      onSubmit={() => {
        if (draft !== null) onSet(draft);
        setDraft(null);
      }}
    >
      <input
        id={id}
        type="text"
        spellcheck={false}
        disabled={locked}
        title={hint}
        value={draft ?? value}
        onInput={(event) => setDraft(event.currentTarget.value)}
      />
      <Button type="submit" disabled={locked || draft === null || draft === value}>
        Set
      </Button>
    </Form>
  );
}
