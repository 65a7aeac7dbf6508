import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Form } from "./Form";

interface Submit {
  /** What the button that does it says. */
  label: string;
  /** What it says meanwhile. */
  busy?: string;
  danger?: boolean;
  /** Whether what was filled in will do. */
  ready?: boolean;
  /** Answers whether it was done; only then the dialog closes. */
  work: () => Promise<boolean>;
}

interface Props {
  title: string;
  onClose: () => void;
  /** What it is for; without it there is only something to read. */
  submit?: Submit;
  children: ComponentChildren;
}

/** The browser's own modal dialog: it keeps the focus, and Escape closes it. */
export function Dialog({ title, onClose, submit, children }: Props) {
  const id = useId();
  const element = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    const before = document.activeElement;
    const dialog = element.current;
    if (dialog && !dialog.open) dialog.showModal();
    // The browser gives the focus back when a dialog is closed, and not when it goes.
    return () => before instanceof HTMLElement && before.focus();
  }, []);
  const run = async () => {
    setBusy(true);
    const done = await submit?.work();
    setBusy(false);
    if (done) onClose();
  };
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <Form onSubmit={run}>
        <h2 id={id}>{title}</h2>
        {children}
        <div class="row end">
          <button type="button" onClick={onClose}>
            {submit ? "Cancel" : "Close"}
          </button>
          {submit && (
            <button
              type="submit"
              class={submit.danger ? "danger solid" : "primary"}
              disabled={busy || submit.ready === false}
            >
              {(busy && submit.busy) || submit.label}
            </button>
          )}
        </div>
      </Form>
    </dialog>
  );
}
