import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Problem, withFailuresTo } from "../state/action";
import { Form } from "./Form";
import { Notice } from "./Notice";
import { Problems } from "./problems";

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
  const [problem, setProblem] = useState<Problem | null>(null);
  const [claimed, claim] = useState<Problem | null>(null);
  // All at once with the dialog's coming and going: a frame later, a quick hand is already at the next key.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    // The browser gives the focus back when a dialog is closed, and not when it goes.
    return () => dialog?.close();
  }, []);
  const run = async () => {
    if (!submit) return;
    setBusy(true);
    setProblem(null);
    const done = await withFailuresTo(setProblem, submit.work);
    setBusy(false);
    if (done) onClose();
  };
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      // Where the browser asks nobody before it closes; it also says so, late, of one that is gone.
      onClose={() => element.current && onClose()}
    >
      <Form onSubmit={run}>
        <h2 id={id}>{title}</h2>
        <Problems.Provider value={{ problem, claim }}>{children}</Problems.Provider>
        {problem && problem !== claimed && (
          <div role="alert">
            <Notice tone="critical">
              <strong>{problem.what}</strong>
              {problem.help && <p class="small">{problem.help}</p>}
            </Notice>
          </div>
        )}
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
