import type { Event } from "../api/types";
import { href } from "../route";
import { moment } from "../text/moment";
import { Empty } from "./Notice";
import { Scroll } from "./Scroll";

/** What happened, the newest first. */
export function EventList({ events }: { events: readonly Event[] }) {
  if (events.length === 0) return <Empty title="Nothing happened yet" />;
  const named = events.some((event) => event.device !== undefined);
  return (
    <Scroll label="Table of events">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">When</th>
            {named && <th scope="col">Device</th>}
            <th scope="col">Event</th>
            <th scope="col">What</th>
          </tr>
        </thead>
        <tbody>
          {events.map((event) => (
            <tr key={`${event.device ?? ""} ${event.number} ${event.at_ms}`}>
              <td class="when">{moment(event.at_ms)}</td>
              {named && <td>{event.device && <a href={href("live", event.device)}>{event.device}</a>}</td>}
              <td>{event.event}</td>
              <td class="wrap">{event.what}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
