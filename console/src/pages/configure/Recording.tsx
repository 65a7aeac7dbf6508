import { useState } from "preact/hooks";
import { post, seg } from "../../api/client";
import type { RecordStatus } from "../../api/types";
import { Trouble } from "../../parts/Notice";
import { may } from "../../state/link";
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
        <button type="button" disabled={!may("operator")} onClick={() => void end()}>
          Stop
        </button>
      </div>
    );
  }
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        void begin();
      }}
    >
      <div class="field grow">
        <label for="record-path">New file on the service's machine</label>
        <input
          id="record-path"
          type="text"
          placeholder="/srv/traces/db.fio.zst"
          spellcheck={false}
          value={file}
          onInput={(event) => setFile(event.currentTarget.value)}
        />
      </div>
      <button type="submit" class="bottom" disabled={!may("operator") || file.trim() === ""}>
        Record
      </button>
    </form>
  );
}
