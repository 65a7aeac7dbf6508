import type { ComponentChildren } from "preact";

export interface Figure {
  label: string;
  value: ComponentChildren;
  /** What it is of, or where it comes from. */
  note?: ComponentChildren;
  /** Words rather than a number. */
  plain?: boolean;
}

export function Figures({ of }: { of: readonly Figure[] }) {
  return (
    <dl class="figures">
      {of.map(({ label, value, note, plain }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd class={plain ? "plain" : ""}>{value}</dd>
          {note && <dd class="note">{note}</dd>}
        </div>
      ))}
    </dl>
  );
}
