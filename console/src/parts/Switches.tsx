interface Choice<T> {
  value: T;
  label: string;
  /** What is read aloud as well, where the label is an abbreviation. */
  spoken?: string;
}

/** One of a few, all of them in sight. */
export function Switches<T extends string | number>(props: {
  label: string;
  value: T | null;
  of: readonly Choice<T>[];
  onChange: (value: T) => void;
}) {
  return (
    <fieldset class="switches" aria-label={props.label}>
      {props.of.map(({ value, label, spoken }) => (
        <button
          type="button"
          key={value}
          aria-pressed={value === props.value}
          onClick={() => props.onChange(value)}
        >
          {label}
          {spoken && <span class="spoken">: {spoken}</span>}
        </button>
      ))}
    </fieldset>
  );
}
