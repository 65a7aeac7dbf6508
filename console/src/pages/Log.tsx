import { useEffect, useState } from "preact/hooks";
import { get, seg } from "../api/client";
import type { Audit, AuditEntry, Event, Job } from "../api/types";
import { Button } from "../parts/Button";
import { EventList } from "../parts/EventList";
import { Input } from "../parts/Field";
import { Empty, Notice, Trouble } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { Switches } from "../parts/Switches";
import { type Column, Table } from "../parts/Table";
import { devices, events, jobs } from "../state/fleet";
import { may } from "../state/link";
import { usePaged } from "../state/paged";
import { deed } from "../text/deed";
import { moment } from "../text/moment";
import { percent, span } from "../text/quantity";
import { matches } from "../text/search";

type Tab = "events" | "jobs" | "audit";

export function LogPage() {
  const [tab, setTab] = useState<Tab>("events");
  const [words, setWords] = useState("");
  return (
    <>
      <div class="row">
        <Switches<Tab>
          label="What is shown"
          value={tab}
          of={[
            { value: "events", label: "Events" },
            { value: "jobs", label: "Jobs" },
            { value: "audit", label: "Audit" },
          ]}
          onChange={setTab}
        />
        <Input
          label="Search the log"
          spoken
          class="search"
          type="search"
          placeholder="Search"
          value={words}
          onSet={setWords}
        />
      </div>
      {tab === "events" && <Events words={words} />}
      {tab === "jobs" && <Jobs words={words} />}
      {tab === "audit" && <AuditLog words={words} />}
    </>
  );
}

/** What happened to every device: what the service remembers, and what came since by the stream. */
function Events({ words }: { words: string }) {
  const [past, setPast] = useState<Event[]>([]);
  const names = devices.value.map((device) => device.name).join("\n");
  useEffect(() => {
    let gone = false;
    const ask = async () => {
      const lists = await Promise.all(
        names
          .split("\n")
          .filter(Boolean)
          .map(async (name) => {
            try {
              const { events } = await get<{ events: Event[] }>(`/devices/${seg(name)}/events`);
              return events.map((event) => ({ ...event, device: name }));
            } catch {
              // Detached in the meantime: what it did is no longer there to be asked for.
              return [];
            }
          }),
      );
      if (!gone) setPast(lists.flat());
    };
    void ask();
    return () => {
      gone = true;
    };
  }, [names]);
  const seen = new Map<string, Event>();
  for (const event of [...past, ...events.value])
    seen.set(`${event.device} ${event.number} ${event.at_ms}`, event);
  const all = [...seen.values()]
    .filter((event) => matches(words, Object.values(event)))
    .sort((a, b) => b.at_ms - a.at_ms);
  return (
    <Panel label="Events">
      <EventList events={all.slice(0, 500)} />
    </Panel>
  );
}

const JOBS: readonly Column<Job>[] = [
  { title: "Begun", class: "when", cell: ({ began_ms }) => moment(began_ms) },
  {
    title: "Job",
    cell: ({ kind, device }) => (
      <>
        {kind}
        {device && ` of ${device}`}
      </>
    ),
  },
  {
    title: "Outcome",
    cell: ({ state, progress }) => (
      <span class={`badge ${JOB_TONES[state]}`}>
        {state === "running" ? `running, ${percent(progress * 100, 0)}` : state}
      </span>
    ),
  },
  {
    title: "Took",
    number: true,
    labelled: true,
    cell: ({ began_ms, ended_ms }) => (ended_ms ? span((ended_ms - began_ms) / 1000) : "–"),
  },
  { title: "Remark", class: "wrap muted small", cell: ({ error, what }) => error ?? what },
];

const JOB_TONES: Record<Job["state"], string> = {
  running: "",
  done: "ok",
  failed: "critical",
  cancelled: "warning",
};

/** What took long: predictions, erases, lab runs and demo loads, the newest first. The service keeps the last hundred. */
function Jobs({ words }: { words: string }) {
  const found = jobs.value.filter(({ kind, device, state, what, error }) =>
    matches(words, [kind, device, state, what, error]),
  );
  return (
    <Panel label="Jobs">
      <Table
        class="cards"
        label="Table of jobs"
        rows={found}
        keyOf={({ id }) => id}
        columns={JOBS}
        empty={<Empty title="No job since the service began" />}
      />
    </Panel>
  );
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: "When", class: "when", cell: ({ at_ms }) => moment(at_ms) },
  {
    title: "Who",
    cell: ({ who, role, via, peer }) => (
      <>
        {who || "somebody not signed in"}{" "}
        <span class="muted small">{[role, via, peer].filter(Boolean).join(", ")}</span>
      </>
    ),
  },
  {
    title: "Did",
    class: "wrap",
    cell: (entry) => (
      <details>
        <summary>{deed(entry)}</summary>
        <code class="muted">
          {entry.method} {entry.path} {entry.what}
        </code>
      </details>
    ),
  },
  {
    title: "Outcome",
    cell: ({ status }) => (
      <span class={`badge ${status < 400 ? "ok" : "warning"}`}>
        {status < 400 ? "done" : "refused"} {status >= 400 && status}
      </span>
    ),
  },
];

/** Who changed what: every request that could change anything, the refused ones too. */
function AuditLog({ words }: { words: string }) {
  const { items, error, older } = usePaged<Audit, AuditEntry>(
    may("operator") ? "/audit" : null,
    5000,
    ({ entries }) => entries,
    ({ number }) => number,
  );
  if (!may("operator")) return <Notice>The audit log is for operators and administrators.</Notice>;
  if (error && items === null) return <Trouble of={error} what="Audit" />;
  return (
    <Panel label="Audit">
      <Table
        class="cards"
        label="Table of changes"
        rows={items?.filter((entry) => matches(words, [deed(entry), ...Object.values(entry)]))}
        keyOf={({ number }) => number}
        columns={COLUMNS}
        empty={
          <Empty title={words.trim() ? "Nothing that is shown has these words" : "Nothing was changed yet"} />
        }
      />
      {older && <Button onClick={older}>Older ones</Button>}
    </Panel>
  );
}
