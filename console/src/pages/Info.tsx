import { useState } from "preact/hooks";
import { seg } from "../api/client";
import type { Device, Field, FieldValue } from "../api/types";
import { Copy } from "../parts/Copy";
import { Input } from "../parts/Field";
import { Asking, Empty } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { type Column, Table } from "../parts/Table";
import { fields } from "../state/fleet";
import { useResource } from "../state/resource";
import { plain, show } from "../text/field";
import { matches } from "../text/search";

/** Fields by what they are about, in the order in which they come. */
function grouped(fields: readonly Field[]): [group: string, fields: Field[]][] {
  const found = new Map<string, Field[]>();
  for (const field of fields) found.set(field.group, [...(found.get(field.group) ?? []), field]);
  return [...found.entries()];
}

/** Every figure of `vsl status -a`. */
export function InfoPage({ subject }: { subject: string }) {
  const { value, error } = useResource<Device>(`/devices/${seg(subject)}`, 2000);
  const [words, setWords] = useState("");
  if (value === null) return <Asking error={error} what="Info" />;
  const figures = value as Readonly<Record<string, FieldValue | undefined>>;

  const known = fields.value.filter((field) => figures[field.name] !== undefined);
  const named = new Set(known.map((field) => field.name));
  // A figure that the list does not explain is shown all the same.
  const rest = Object.keys(figures)
    .filter((name) => !named.has(name))
    .map(
      (name): Field => ({
        name,
        label: name,
        unit: "text",
        group: "Others",
        brief: false,
        meaning: "",
        source: "",
      }),
    );
  const all = [...known, ...rest];
  const found = all.filter(({ name, label, meaning }) =>
    matches(words, [name, label, meaning, figures[name]]),
  );
  const asText = () =>
    found.map((field) => `${field.label}\t${show(field.unit, figures[field.name])}`).join("\n");
  const asJson = () =>
    JSON.stringify(Object.fromEntries(found.map((field) => [field.name, figures[field.name]])), null, 2);
  const columns: Column<Field>[] = [
    {
      title: "Figure",
      head: true,
      cell: ({ label, name }) => (
        <>
          {label}
          <br />
          <code class="muted small">{name}</code>
        </>
      ),
    },
    { title: "Value", class: "wrap", cell: ({ unit, name }) => show(unit, figures[name]) },
    {
      title: "Meaning",
      class: "muted small meaning",
      cell: ({ meaning, source }) => (
        <>
          {meaning} {source && source !== "set" && <span class="badge">{source}</span>}
        </>
      ),
    },
    {
      title: "Copy",
      spoken: true,
      number: true,
      cell: ({ name, label }) => <Copy text={() => plain(figures[name])} what={label} />,
    },
  ];

  return (
    <Panel label="Every figure">
      <header>
        <Input
          label="Search figures"
          spoken
          class="search"
          type="search"
          placeholder="Search by name, meaning or value"
          value={words}
          onSet={setWords}
        />
        <span class="muted small" role="status">
          {found.length} of {all.length} figures
        </span>
        <span class="push" />
        <Copy text={asText} what="the figures shown, as text">
          Copy text
        </Copy>
        <Copy text={asJson} what="the figures shown, as JSON">
          Copy JSON
        </Copy>
      </header>
      {found.length === 0 && <Empty title="Nothing is called so" />}
      {grouped(found).map(([group, fields]) => (
        <section key={group} aria-label={group}>
          <h2>{group}</h2>
          <Table class="info" rows={fields} keyOf={({ name }) => name} columns={columns} />
        </section>
      ))}
    </Panel>
  );
}
