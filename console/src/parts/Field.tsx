import type { ComponentChildren, InputHTMLAttributes } from "preact";
import { useContext, useId, useLayoutEffect, useRef } from "preact/hooks";
import { Problems } from "./problems";

interface FieldProps {
  label: ComponentChildren;
  /** The label is read aloud, not shown: what stands in the field says it to everybody else. */
  spoken?: boolean | undefined;
  /** Said below. */
  hint?: ComponentChildren;
  class?: string | undefined;
}

/** A label, and under it what it names, which takes the id. */
export function Field(props: FieldProps & { children: (id: string) => ComponentChildren }) {
  const id = useId();
  return (
    <div class={`field ${props.class ?? ""}`}>
      <label for={id} class={props.spoken ? "spoken" : undefined}>
        {props.label}
      </label>
      {props.children(id)}
      {props.hint && (
        <span class="hint" id={`${id}-hint`}>
          {props.hint}
        </span>
      )}
    </div>
  );
}

type Passed =
  | "aria-invalid"
  | "autocomplete"
  | "disabled"
  | "max"
  | "min"
  | "placeholder"
  | "required"
  | "spellcheck"
  | "step";

interface InputProps extends FieldProps, Pick<InputHTMLAttributes, Passed> {
  type?: "text" | "number" | "password" | "search" | "url";
  /** Failures that are about it, besides those that begin with what was typed here. */
  blame?: RegExp | undefined;
  value: string;
  onSet: (text: string) => void;
}

/** Failures that begin with a device's path, and are about what opens it. */
const OPENS = /passphrase|key file|is encrypted/;

/** What went wrong in the dialog around a field, if that is about the field: the focus goes there, and the dialog does not say it again. */
function useProblem(typed: string, blame: RegExp | undefined) {
  const { problem, claim } = useContext(Problems);
  const element = useRef<HTMLInputElement>(null);
  const what = problem?.what ?? "";
  const begins =
    typed !== "" && (what.startsWith(typed) || what.startsWith(`'${typed}'`)) && !OPENS.test(what);
  const mine = begins || blame?.test(what) ? problem : null;
  useLayoutEffect(() => {
    if (mine === null) return;
    claim(mine);
    element.current?.closest("details")?.setAttribute("open", "");
    element.current?.focus();
  }, [mine, claim]);
  return { element, problem: mine };
}

/** A line of text under its label. */
export function Input(props: InputProps) {
  const { label, spoken, hint: usual, class: kind, type = "text", blame, onSet, ...rest } = props;
  const { element, problem } = useProblem(props.value.trim(), blame);
  const hint = problem ? [problem.what, problem.help].filter(Boolean).join("; ") : usual;
  if (problem) rest["aria-invalid"] = true;
  return (
    <Field label={label} spoken={spoken} hint={hint} class={kind}>
      {(id) => (
        <input
          id={id}
          ref={element}
          // One element for all sorts: its type is not the literal that the element's attributes are told apart by.
          type={type as "text"}
          aria-describedby={hint ? `${id}-hint` : undefined}
          {...rest}
          onInput={(event) => onSet(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface ConfirmProps {
  name: string;
  value: string;
  onSet: (text: string) => void;
}

/** Before something is destroyed its name is typed. */
export function Confirm({ name, value, onSet }: ConfirmProps) {
  const label = (
    <>
      Type <strong>{name}</strong> to confirm
    </>
  );
  return <Input label={label} autocomplete="off" spellcheck={false} value={value} onSet={onSet} />;
}

/** What may be chosen. */
export function Options<T extends string | number>(props: { of: readonly T[]; say?: (one: T) => string }) {
  const { of, say = String } = props;
  return (
    <>
      {of.map((one) => (
        <option key={one} value={one}>
          {say(one)}
        </option>
      ))}
    </>
  );
}

interface SelectProps<T> extends FieldProps {
  value: T;
  of: readonly T[];
  /** How one of them is called, where it is not its own name. */
  say?: (one: T) => string;
  disabled?: boolean;
  onSet: (chosen: T) => void;
}

/** One of several, under its label. */
export function Select<T extends string | number>(props: SelectProps<T>) {
  const { value, of, say = String, disabled = false, onSet, ...field } = props;
  return (
    <Field {...field}>
      {(id) => (
        <select
          id={id}
          value={value}
          disabled={disabled}
          onChange={(event) => {
            const chosen = of[event.currentTarget.selectedIndex];
            if (chosen !== undefined) onSet(chosen);
          }}
        >
          <Options of={of} say={say} />
        </select>
      )}
    </Field>
  );
}

interface CheckProps {
  value: boolean;
  onSet: (on: boolean) => void;
  children: ComponentChildren;
}

/** Something that is or is not. */
export function Check({ value, onSet, children }: CheckProps) {
  return (
    <label class="check">
      <input type="checkbox" checked={value} onChange={(event) => onSet(event.currentTarget.checked)} />
      {children}
    </label>
  );
}
