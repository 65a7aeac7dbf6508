import { remove } from "../api/client";
import type { Job } from "../api/types";
import { act } from "../state/action";
import { may } from "../state/link";
import { percent } from "../text/quantity";
import { Button } from "./Button";
import { Trouble } from "./Notice";

/** How far something long has come, and a way to end it. */
export function JobProgress({ job }: { job: Job }) {
  if (job.state === "failed") return <Trouble of={new Error(job.error ?? "it failed")} what={job.kind} />;
  if (job.state === "cancelled") return <p class="muted">It was cancelled.</p>;
  const share = job.progress === null || job.progress === undefined ? null : job.progress * 100;
  return (
    <div class="row progress">
      <progress aria-label={job.kind} {...(share === null ? {} : { max: 100, value: share })} />
      <span>
        {share !== null && percent(share, 0)} <span class="muted">{job.what}</span>
      </span>
      {may("operator") && job.state === "running" && (
        <Button class="push" onClick={() => act("Cancelled", () => remove(`/jobs/${job.id}`))}>
          Cancel
        </Button>
      )}
    </div>
  );
}
