import type { Tone } from "./State";

/** A share of a whole, as a bar. The words beside it say it too, so the bar is not read aloud. */
export function Meter({ share, tone = "ok" }: { share: number | null | undefined; tone?: Tone }) {
  const width = Math.min(100, Math.max(0, share ?? 0));
  return (
    <div class={`meter ${tone}`} aria-hidden="true">
      <i style={{ width: `${width}%` }} />
    </div>
  );
}
