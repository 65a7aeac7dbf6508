import type { ComponentChildren } from "preact";
import { Form } from "./Form";

interface Props {
  /** Stands above it; without one it has only the label. */
  title?: string;
  /** What it is called when it is read aloud, where that is not the title. */
  label?: string;
  /** Beside the title. */
  aside?: ComponentChildren;
  /** Makes it a form. */
  onSubmit?: () => void;
  children: ComponentChildren;
}

/** A part of a page, in a frame of its own. */
export function Panel({ title, label, aside, onSubmit, children }: Props) {
  const frame = { class: "panel", "aria-label": label ?? title };
  const content = (
    <>
      {title !== undefined && (
        <header>
          <h2>{title}</h2>
          {aside}
        </header>
      )}
      {children}
    </>
  );
  if (onSubmit === undefined) return <section {...frame}>{content}</section>;
  return (
    <Form {...frame} onSubmit={onSubmit}>
      {content}
    </Form>
  );
}
