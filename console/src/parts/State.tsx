import type { ComponentChildren } from "preact";

export type Tone = "ok" | "warning" | "critical" | "off";

/** A tone's shape, so that it is not told by colour alone: disc, triangle, diamond, ring. */
export function Mark({ tone }: { tone: Tone }) {
  return (
    <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true" fill="currentColor">
      {tone === "ok" && <circle cx="6" cy="6" r="4.5" />}
      {tone === "warning" && <path d="M6 .8 11.6 11H.4Z" />}
      {tone === "critical" && <path d="M6 0 12 6 6 12 0 6Z" />}
      {tone === "off" && <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="1.6" />}
    </svg>
  );
}

export function State({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return (
    <span class={`state ${tone}`}>
      <Mark tone={tone} />
      <span>{children}</span>
    </span>
  );
}

const SEVERITY_TONES: Record<string, Tone> = { critical: "critical", warning: "warning", information: "off" };

export function severityTone(severity: string): Tone {
  return SEVERITY_TONES[severity] ?? "off";
}
