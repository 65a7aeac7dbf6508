import { useState } from "preact/hooks";
import { post, seg } from "../../api/client";
import type { RecordStatus } from "../../api/types";
import { Button } from "../../parts/Button";
import { Input } from "../../parts/Field";
import { Form } from "../../parts/Form";
import { Trouble } from "../../parts/Notice";
import { useResource } from "../../state/resource";
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
    <Form class="row" onSubmit={begin}>
      <Input
        label="New file on the service's machine"
        class="grow"
        placeholder="/srv/traces/db.fio.zst"
        spellcheck={false}
        value={file}
        onSet={setFile}
      />
      <Button type="submit" class="bottom" needs="operator" disabled={file.trim() === ""}>
        Record
      </Button>
    </Form>
  );
}
