import { useState } from "preact/hooks";
import { post, seg } from "../api/client";
import type { Device } from "../api/types";
import { Button } from "../parts/Button";
import { Input } from "../parts/Field";
import { Form } from "../parts/Form";
import { Empty } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { href } from "../route";
import { act } from "../state/action";
import { device as find } from "../state/fleet";
import { bytes, percent } from "../text/quantity";
import { parseSize } from "../text/size";
import { Exports } from "./configure/Clients";
import { Detach, Load } from "./configure/Danger";
import { Keys } from "./configure/Keys";
import { Recording } from "./configure/Recording";
import { SettingsForm } from "./configure/SettingsForm";

export function ConfigurePage({ subject }: { subject: string }) {
  const device = find(subject);
  if (device === null) return null;
  return (
    <>
      <Exports key={device.name} device={device} />
      <div class="flow">
        <Panel title="Attachment" aside={<Detach device={device} />}>
          <dl class="pairs">
            <dt>State</dt>
            <dd>
              {device.state}, {device.health}
            </dd>
            <dt>Device file</dt>
            <dd class="wrap mono">{(device.paths ?? [device.path]).join(", ")}</dd>
            {device.store_free_bytes !== undefined && device.store_free_bytes !== null && (
              <>
                <dt>Store below</dt>
                <dd>
                  {bytes(device.store_free_bytes)} free
                  {device.allocated_bytes !== undefined &&
                    `, ${bytes(device.allocated_bytes)} taken by this device`}
                </dd>
              </>
            )}
            <dt>Access</dt>
            <dd>{device.read_only ? "read-only" : "read and write"}</dd>
          </dl>
          <div class="row">
            <Load device={device} />
            <a class="button" href={href("format", device.name)}>
              Format…
            </a>
          </div>
        </Panel>

        <Panel title="Settings" aside={<span class="muted small">kept on the device</span>}>
          {device.config ? (
            <SettingsForm device={device.name} config={device.config} />
          ) : (
            <Empty title="Only while it is attached" />
          )}
        </Panel>

        <Panel label="Durability" title="Durability and upkeep">
          <Durability device={device} />
          <Upkeep device={device} />
        </Panel>

        <Panel title="Encryption">
          <Keys device={device} />
        </Panel>

        <Panel title="Recording" aside={<span class="muted small">what clients ask, as a trace</span>}>
          <Recording device={device.name} />
        </Panel>
      </div>
    </>
  );
}

const CAPACITORS =
  "An emulated card has capacitors: what it has answered survives a cut of the drill's power, flushed or not.";
/** What each mode of durability comes to. */
const SURVIVES: Record<string, string> = {
  "write-back":
    "What was flushed, or written with FUA, survives a power cut; what was not may be lost, and no write is ever torn.",
  "write-through":
    "Everything that was answered survives a power cut, flushed or not. Each write waits for it.",
  remote:
    "What was flushed, or written with FUA, is in the object store, too, and survives the loss of this machine.",
  unsafe:
    "Flushes do not wait: a power cut may lose anything that was written lately. No write is torn, and a detach keeps everything.",
};

/** How many files may be lost, as things stand. */
function redundancy(device: Device): string {
  const parity = device.parity_files ?? 0;
  const lost = device.lost_dies?.length ?? 0;
  if (parity === 0) return "No parity: the loss of its file is the loss of its data.";
  if (lost === 0) return `${device.files} files, of which any ${parity === 1 ? "one" : parity} may be lost.`;
  const left = parity - lost;
  const gone = `${lost} of ${device.files} files ${lost === 1 ? "is" : "are"} lost.`;
  return left > 0
    ? `${gone} ${left === 1 ? "One" : left} more may be.`
    : `${gone} The data is safe; with the next loss it is not. Rebuild before that.`;
}

function Durability({ device }: { device: Device }) {
  return (
    <>
      <p>{device.emulation ? CAPACITORS : SURVIVES[device.durability ?? "write-back"]}</p>
      <p>{redundancy(device)}</p>
    </>
  );
}

function Resize({ device }: { device: Device }) {
  const [size, setSize] = useState("");
  const wanted = parseSize(size);
  return (
    <Form
      class="row"
      onSubmit={() => {
        if (wanted === null) return;
        void act(`${device.name} has another size`, () =>
          post(`/devices/${seg(device.name)}/resize`, { size_bytes: wanted }),
        );
      }}
    >
      <Input
        label="Another host capacity, such as 200 GiB: clients go on meanwhile"
        class="grow"
        spellcheck={false}
        value={size}
        onSet={setSize}
      />
      <Button type="submit" class="bottom" needs="operator" disabled={wanted === null}>
        Resize
      </Button>
    </Form>
  );
}

function Upkeep({ device }: { device: Device }) {
  const [onto, setOnto] = useState("");
  const scrubbing = device.scrub_percent !== undefined && device.scrub_percent !== null;
  const scrub = (on: boolean) =>
    void act(on ? `${device.name} is scrubbed` : `The scrub of ${device.name} has stopped`, () =>
      post(`/devices/${seg(device.name)}/scrub`, { on }),
    );
  const optimising = device.optimise_percent !== undefined && device.optimise_percent !== null;
  const optimise = (on: boolean) =>
    void act(on ? `${device.name} is brought into order` : `Optimising ${device.name} has stopped`, () =>
      post(`/devices/${seg(device.name)}/optimise`, { on }),
    );
  const lost = device.lost_dies ?? [];
  return (
    <div class="stack">
      <div class="row">
        <span>
          {scrubbing
            ? `Scrubbing: ${percent(device.scrub_percent)} read and checked.`
            : "A scrub reads and checks everything that lives on it."}
        </span>
        <Button class="push" needs="operator" onClick={() => scrub(!scrubbing)}>
          {scrubbing ? "Stop" : "Scrub"}
        </Button>
      </div>
      {!device.emulation && (
        <div class="row">
          <span>
            {optimising
              ? `Optimising: ${percent(device.optimise_percent)} gone over.`
              : "Optimising writes what lies scattered once more by address, so that it is read in order faster."}
          </span>
          <Button class="push" needs="operator" onClick={() => optimise(!optimising)}>
            {optimising ? "Stop" : "Optimise"}
          </Button>
        </div>
      )}
      {!device.emulation && <Resize device={device} />}
      {device.rebuilding_die !== undefined && device.rebuilding_die !== null && (
        <p>
          Die {device.rebuilding_die} is being rebuilt: {percent(device.rebuild_percent)}.
        </p>
      )}
      {lost.map((die) => (
        <Form
          key={die}
          class="row"
          onSubmit={() => {
            const body = onto.trim() === "" ? { die } : { die, onto: onto.trim() };
            void act(`Die ${die} of ${device.name} is being rebuilt`, () =>
              post(`/devices/${seg(device.name)}/rebuild`, body),
            );
          }}
        >
          <Input
            label={`Die ${die} is lost. Rebuild it onto (by default its old file)`}
            class="grow"
            spellcheck={false}
            value={onto}
            onSet={setOnto}
          />
          <Button type="submit" class="bottom" needs="operator">
            Rebuild
          </Button>
        </Form>
      ))}
    </div>
  );
}
