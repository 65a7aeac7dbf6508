import { useState } from "preact/hooks";
import type { Certificate, Device, Job } from "../../api/types";
import { Button } from "../../parts/Button";
import { Copy } from "../../parts/Copy";
import { JobProgress } from "../../parts/JobProgress";
import { Notice } from "../../parts/Notice";
import { Panel } from "../../parts/Panel";
import { jobs } from "../../state/fleet";
import { may } from "../../state/link";
import { moment } from "../../text/moment";
import { bytes } from "../../text/quantity";
import { EraseDialog } from "./EraseDialog";

/** What came of an erase that has come to its end. */
export function certificateOf(job: Job | null): Certificate | null {
  const result = job?.kind === "erase" && job.state === "done" ? job.result : null;
  return typeof result === "object" && result !== null && "erased_uuid" in result ? result : null;
}

/** Erasing for good, and how far one is. */
export function Erase({ device }: { device: Device }) {
  const [asking, setAsking] = useState(false);
  const job = jobs.value.find((job) => job.kind === "erase" && job.device === device.name) ?? null;
  const certificate = certificateOf(job);
  return (
    <Panel label="Erase" title="Erase for good">
      <p>
        A format makes what was stored unreachable; its bytes may still be on the store. An erase overwrites
        them, checks that, and gives a certificate.
      </p>
      {job && job.state !== "done" && <JobProgress job={job} />}
      {certificate && <Shown certificate={certificate} />}
      <div class="row">
        <Button
          class="danger"
          needs="administrator"
          disabled={job?.state === "running"}
          onClick={() => setAsking(true)}
        >
          Erase {device.name}…
        </Button>
        {!may("administrator") && <span class="muted small">This takes the role of an administrator.</span>}
      </div>
      {asking && <EraseDialog device={device} onClose={() => setAsking(false)} />}
    </Panel>
  );
}

function Shown({ certificate }: { certificate: Certificate }) {
  const { level, ended, erased_uuid, zeroed_bytes, verified_bytes, keys_destroyed } = certificate;
  return (
    <Notice tone="ok">
      <p>
        <strong>Erased</strong> at {moment(ended * 1000)}, level {level}: {bytes(zeroed_bytes)} overwritten,{" "}
        {bytes(verified_bytes)} read back
        {keys_destroyed > 0 && `, ${keys_destroyed} copies of the data key destroyed`}.
      </p>
      <div class="row">
        <span class="wrap small">
          What is gone: <code>{erased_uuid}</code>
        </span>
        <Copy text={JSON.stringify(certificate, null, 2)} what="the certificate" />
      </div>
    </Notice>
  );
}
