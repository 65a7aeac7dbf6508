import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Form } from "./Form";

interface Props {
  title: string;
  onClose: () => void;
  /** What the form does; the dialog stays open until its owner closes it. */
  onSubmit?: () => void;
  children: ComponentChildren;
  /** The buttons at the end, besides the one that closes it. */
  actions?: ComponentChildren;
}

/** The browser's own modal dialog: it keeps the focus, and Escape closes it. */
export function Dialog({ title, onClose, onSubmit, children, actions }: Props) {
  const id = useId();
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    if (dialog && !dialog.open) dialog.showModal();
  }, []);
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <Form onSubmit={() => onSubmit?.()}>
        <h2 id={id}>{title}</h2>
        {children}
        <div class="row end">
          <button type="button" onClick={onClose}>
            {actions ? "Cancel" : "Close"}
          </button>
          {actions}
        </div>
      </Form>
    </dialog>
  );
}
