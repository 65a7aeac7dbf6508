import type { ComponentChildren } from "preact";
import { failure } from "../api/client";

type Tone = "plain" | "ok" | "warning" | "critical";

export function Notice({
  tone = "plain",
  children,
  actions,
}: {
  tone?: Tone;
  children: ComponentChildren;
  actions?: ComponentChildren;
}) {
  return (
    <div class={`notice ${tone}`} role={tone === "critical" ? "alert" : undefined}>
      <div>{children}</div>
      {actions}
    </div>
  );
}

/** What went wrong and what to do, in the service's own words. */
export function Trouble({ of, what }: { of: unknown; what?: string | undefined }) {
  const { message, help } = failure(of);
  return (
    <Notice tone="critical">
      <strong>{what ? `${what}: ${message}` : message}</strong>
      {help && <p>{help}</p>}
    </Notice>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

/** In the place of what has been asked for and has not come: so far, or because of what went wrong. */
export function Asking({ error = null, what }: { error?: unknown; what?: string }) {
  if (error === null) return <Empty title="Asking the service…" />;
  return <Trouble of={error} what={what} />;
}
