import type { Snapshot } from "../../api/types";
import { moment } from "../../text/moment";
import { bytes } from "../../text/quantity";
import { marks, place } from "./marks";

/** Heights, in pixels: of the line's ground, and of the tallest bar on it. */
const GROUND = 96;
const TALLEST = 72;
const WIDE = 5;
/** Shares of the width that are left free at both ends. */
const EDGE = 0.02;

const across = (at: number) => `${(EDGE + at * (1 - 2 * EDGE)) * 100}%`;

/** The snapshots at their times, as tall as what each alone holds. The table says the same to read. */
export function Timeline({ snapshots }: { snapshots: readonly Snapshot[] }) {
  const now = Date.now() / 1000;
  const reach = Math.max(...snapshots.map(({ created }) => now - created), 60);
  const most = Math.max(...snapshots.map(({ alone_bytes }) => alone_bytes));
  const label = `${snapshots.length} ${snapshots.length === 1 ? "snapshot" : "snapshots"}; the most that one holds alone is ${bytes(most)}`;
  return (
    <svg class="timeline" role="img" aria-label={label}>
      {most > 0 && (
        <>
          <line class="grid" x1="0" x2="100%" y1={GROUND - TALLEST} y2={GROUND - TALLEST} />
          <text x="0" y={GROUND - TALLEST - 6}>
            {bytes(most)} held alone
          </text>
        </>
      )}
      {snapshots.some(({ held }) => held) && (
        <text class="held" x="100%" y={GROUND - TALLEST - 6} text-anchor="end">
          held
        </text>
      )}
      {marks(reach).map(({ at, words }) => (
        <g key={words}>
          <line class="mark" x1={across(at)} x2={across(at)} y1={GROUND} y2={GROUND + 5} />
          <text x={across(at)} y={GROUND + 18} text-anchor={at === 1 ? "end" : "middle"}>
            {words}
          </text>
        </g>
      ))}
      {snapshots.map(({ name, created, alone_bytes, held }) => {
        const height = 4 + (most > 0 ? (alone_bytes / most) * (TALLEST - 4) : 0);
        return (
          <g key={name} class={held ? "held" : undefined}>
            <title>
              {name}: {moment(created * 1000)}, {bytes(alone_bytes)} alone{held ? ", held" : ""}
            </title>
            <rect
              x={across(place(now - created, reach))}
              y={GROUND - height}
              width={WIDE}
              height={height}
              transform={`translate(${-WIDE / 2})`}
            />
          </g>
        );
      })}
      <line class="ground" x1="0" x2="100%" y1={GROUND} y2={GROUND} />
    </svg>
  );
}
