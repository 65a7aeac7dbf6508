import type { ComponentChildren } from "preact";

/** Something wider than its place: it can be moved with the keyboard too. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without the focus, arrow keys do not scroll it.
    <section class="scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
