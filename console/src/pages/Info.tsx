import { useState } from "preact/hooks";
import { seg } from "../api/client";
import type { Device, Field, FieldValue } from "../api/types";
import { Copy } from "../parts/Copy";
import { Input } from "../parts/Field";
import { Empty, Trouble } from "../parts/Notice";
import { fields } from "../state/fleet";
import { useResource } from "../state/resource";
import { plain, show } from "../text/field";

/** Every figure of `vsl status -a`. */
export function InfoPage({ subject }: { subject: string }) {
  const { value, error } = useResource<Device>(`/devices/${seg(subject)}`, 2000);
  const [words, setWords] = useState("");
  if (error && value === null) return <Trouble of={error} what="Info" />;
  if (value === null) return <Empty title="Asking the service…" />;
  const figures = value as Readonly<Record<string, FieldValue | undefined>>;

  const known = fields.value.filter((field) => figures[field.name] !== undefined);
  const named = new Set(known.map((field) => field.name));
  // A figure that the list does not explain is shown all the same.
  const rest = Object.keys(figures)
    .filter((name) => !named.has(name))
    .map((name): Field => ({ name, label: name, unit: "text", brief: false, meaning: "", source: "" }));
  const all = [...known, ...rest];
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((field) => {
    const text = `${field.name} ${field.label} ${field.meaning} ${plain(figures[field.name])}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  const asText = () =>
    found.map((field) => `${field.label}\t${show(field.unit, figures[field.name])}`).join("\n");
  const asJson = () =>
    JSON.stringify(Object.fromEntries(found.map((field) => [field.name, figures[field.name]])), null, 2);

  return (
    <section class="panel" aria-label="Every figure">
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
      {found.length === 0 ? (
        <Empty title="Nothing is called so" />
      ) : (
        <table class="info">
          <thead>
            <tr>
              <th scope="col">Figure</th>
              <th scope="col">Value</th>
              <th scope="col">Meaning</th>
              <th scope="col">
                <span class="spoken">Copy</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {found.map((field) => (
              <tr key={field.name}>
                <th scope="row">
                  {field.label}
                  <br />
                  <code class="muted small">{field.name}</code>
                </th>
                <td class="wrap">{show(field.unit, figures[field.name])}</td>
                <td class="muted small meaning">
                  {field.meaning}{" "}
                  {field.source && field.source !== "set" && <span class="badge">{field.source}</span>}
                </td>
                <td class="number">
                  <Copy text={() => plain(figures[field.name])} what={field.label} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
