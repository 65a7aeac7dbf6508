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
export function Trouble({ of, what }: { of: unknown; what?: string }) {
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
