import { useState } from "preact/hooks";
import { post, seg } from "../../api/client";
import type { EndedRecording, RecordStatus } from "../../api/types";
import { Button } from "../../parts/Button";
import { Input } from "../../parts/Field";
import { Form } from "../../parts/Form";
import { Trouble } from "../../parts/Notice";
import { type Column, Table } from "../../parts/Table";
import { useResource } from "../../state/resource";
import { ago } from "../../text/moment";
import { count } from "../../text/quantity";

/** Records what clients ask of the device, as a trace that can be played back elsewhere. */
export function Recording({ device }: { device: string }) {
  const path = `/devices/${seg(device)}/record`;
  const { value, error, change } = useResource<RecordStatus>(path, 3000);
  const [file, setFile] = useState("");
  const begin = () => change(`Recording ${device}`, () => post(path, { path: file.trim() }));
  const end = () => change(`The recording of ${device} has ended`, () => post(`${path}/stop`));
  if (error && value === null) return <Trouble of={error} />;
  if (value?.recording) {
    return (
      <div class="row">
        <span class="wrap">
          {count(value.written)} requests in <code>{value.path}</code>
          {value.dropped > 0 && `, ${count(value.dropped)} left out`}
        </span>
        <Button needs="operator" onClick={end}>
          Stop
        </Button>
      </div>
    );
  }
  return (
    <div class="stack">
      <Form class="row" onSubmit={begin}>
        <Input
          label="New file in the service’s directory, or its path"
          class="grow"
          placeholder="db.fio.zst"
          spellcheck={false}
          value={file}
          onSet={setFile}
        />
        <Button type="submit" class="bottom" needs="operator" disabled={file.trim() === ""}>
          Record
        </Button>
      </Form>
      <Ended device={device} />
    </div>
  );
}

const COLUMNS: readonly Column<EndedRecording>[] = [
  {
    title: "Recording",
    head: true,
    cell: ({ path, exists, error }) => (
      <span class="wrap">
        <code>{path}</code>
        {!exists && <span class="muted small"> the file is gone</span>}
        {error && <span class="muted small"> {error}</span>}
      </span>
    ),
  },
  { title: "Ended", cell: ({ ended_ms }) => ago(ended_ms) },
  { title: "Requests", number: true, cell: ({ written }) => count(written) },
  { title: "Left out", number: true, cell: ({ dropped }) => count(dropped) },
];

/** Those that have ended: the newest is what a prediction plays. */
function Ended({ device }: { device: string }) {
  const { value } = useResource<EndedRecording[]>(`/devices/${seg(device)}/recordings`, 10_000);
  if (!value || value.length === 0) return null;
  return (
    <Table label="Ended recordings" rows={value.slice(0, 10)} keyOf={({ path }) => path} columns={COLUMNS} />
  );
}
