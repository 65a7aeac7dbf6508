import type { Event } from "../api/types";
import { href } from "../route";
import { moment } from "../text/moment";
import { Empty } from "./Notice";
import { type Column, Table } from "./Table";

const WHEN: Column<Event> = { title: "When", class: "when", cell: ({ at_ms }) => moment(at_ms) };
const DEVICE: Column<Event> = {
  title: "Device",
  cell: ({ device }) => device && <a href={href("live", device)}>{device}</a>,
};
const WHAT: readonly Column<Event>[] = [
  { title: "Event", cell: ({ event }) => event },
  { title: "What", class: "wrap", cell: ({ what }) => what },
];

/** What happened, the newest first. */
export function EventList({ events }: { events: readonly Event[] }) {
  const named = events.some(({ device }) => device !== undefined);
  return (
    <Table
      class="cards"
      label="Table of events"
      rows={events}
      keyOf={({ device, number, at_ms }) => `${device ?? ""} ${number} ${at_ms}`}
      columns={named ? [WHEN, DEVICE, ...WHAT] : [WHEN, ...WHAT]}
      empty={<Empty title="Nothing happened yet" />}
    />
  );
}
