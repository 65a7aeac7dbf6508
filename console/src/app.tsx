import { effect } from "@preact/signals";
import type { FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { host } from "./api/client";
import icon from "./icon.svg";
import { AlertsPage } from "./pages/Alerts";
import { CachesPage } from "./pages/Caches";
import { ConfigurePage } from "./pages/Configure";
import { DrillsPage } from "./pages/Drills";
import { FormatPage } from "./pages/Format";
import { HostsPage } from "./pages/Hosts";
import { InfoPage } from "./pages/Info";
import { LabPage } from "./pages/Lab";
import { LifetimePage } from "./pages/Lifetime";
import { LivePage } from "./pages/Live";
import { LogPage } from "./pages/Log";
import { OverviewPage } from "./pages/Overview";
import { SettingsPage } from "./pages/Settings";
import { SignIn } from "./pages/SignIn";
import { SnapshotsPage } from "./pages/Snapshots";
import { Options } from "./parts/Field";
import { Asking, Empty, Notice } from "./parts/Notice";
import { DEVICE_PAGES, go, HOST_PAGES, href, isDevicePage, type Page, route } from "./route";
import { putAway, said } from "./state/action";
import { alerts, choose, device, devices, loaded, lookAt, preferred } from "./state/fleet";
import { lostAt, phase, trouble } from "./state/link";
import { latest } from "./state/telemetry";
import { clock } from "./text/moment";

interface Entry {
  title: string;
  Page: FunctionComponent<{ subject: string }>;
}

const PAGES: Record<Page, Entry> = {
  overview: { title: "Overview", Page: OverviewPage },
  live: { title: "Live", Page: LivePage },
  snapshots: { title: "Snapshots", Page: SnapshotsPage },
  lifetime: { title: "Lifetime", Page: LifetimePage },
  info: { title: "Info", Page: InfoPage },
  format: { title: "Format", Page: FormatPage },
  configure: { title: "Configure", Page: ConfigurePage },
  drills: { title: "Drills", Page: DrillsPage },
  caches: { title: "Caches", Page: CachesPage },
  alerts: { title: "Alerts", Page: AlertsPage },
  lab: { title: "Lab", Page: LabPage },
  log: { title: "Log", Page: LogPage },
  hosts: { title: "Hosts", Page: HostsPage },
  settings: { title: "Settings", Page: SettingsPage },
};

// The tab says what needs attention while the page is in the background.
effect(() => {
  const count = alerts.value.length;
  const where = host.value === null ? "" : ` · ${host.value}`;
  const about = phase.value === "offline" ? "(offline) " : count > 0 ? `(${count}) ` : "";
  document.title = `${about}${PAGES[route.value.page].title} · OpenVSL${where}`;
});

// A device page that names no device opens the one that was looked at last.
effect(() => {
  const { page, subject } = route.value;
  if (isDevicePage(page)) {
    if (subject !== null) choose(subject);
    else if (preferred.value !== null) window.location.replace(href(page, preferred.value));
  }
});

export function App() {
  if (phase.value === "signed-out") return <SignIn />;
  return <Shell />;
}

function Shell() {
  const [open, setOpen] = useState(false);
  const { page, subject } = route.value;
  const heading = useRef<HTMLHeadingElement>(null);
  const first = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page closes the menu and moves the focus to its title.
  useEffect(() => {
    setOpen(false);
    window.scrollTo(0, 0);
    if (!first.current) heading.current?.focus();
    first.current = false;
  }, [page, subject]);
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => document.getElementById("content")?.focus()}>
        Skip to content
      </button>
      <Side page={page} open={open} />
      {open && (
        <button type="button" class="veil" aria-label="Close the menu" onClick={() => setOpen(false)} />
      )}
      <header class="top">
        <button
          type="button"
          class="icon menu"
          aria-label="Menu"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        >
          <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
            <path d="M1 3h14M1 8h14M1 13h14" stroke="currentColor" stroke-width="1.6" />
          </svg>
        </button>
        <h1 ref={heading} tabIndex={-1}>
          {PAGES[page].title}
          {isDevicePage(page) && subject && <span class="muted"> · {subject}</span>}
        </h1>
        <Connection />
      </header>
      <main id="content" tabIndex={-1}>
        <Offline />
        <Content page={page} subject={subject} />
      </main>
      <Toasts />
    </div>
  );
}

/** The page, where there is what it is of. */
function Content({ page, subject }: { page: Page; subject: string | null }) {
  const { Page } = PAGES[page];
  if (isDevicePage(page) && subject === null) return <NoDevice />;
  if (phase.value === "starting" && !loaded.value) return <Asking />;
  if (isDevicePage(page) && loaded.value && device(subject) === null) {
    return (
      <Elsewhere title={`No device is called ${subject}`}>
        It may have been detached, or have another name at this host.
      </Elsewhere>
    );
  }
  return <Page key={`${host.value}/${page}/${subject}`} subject={subject ?? ""} />;
}

function NoDevice() {
  if (!loaded.value) return <Asking />;
  return <Elsewhere title="No device is attached">Attach one, or start the demo, on the overview.</Elsewhere>;
}

function Elsewhere({ title, children }: { title: string; children: string }) {
  return (
    <Empty title={title}>
      <p>{children}</p>
      <a class="button" href={href("overview")}>
        To the overview
      </a>
    </Empty>
  );
}

function Side({ page, open }: { page: Page; open: boolean }) {
  const name = route.value.subject !== null && isDevicePage(page) ? route.value.subject : preferred.value;
  const link = (to: Page, subject?: string | null) => (
    <li key={to}>
      <a href={href(to, subject)} aria-current={page === to ? "page" : undefined}>
        {PAGES[to].title}
        {to === "alerts" && alerts.value.length > 0 && (
          <span
            class={`badge count ${alerts.value.some((alert) => alert.severity === "critical") ? "critical" : "warning"}`}
          >
            {alerts.value.length}
            <span class="spoken"> active</span>
          </span>
        )}
      </a>
    </li>
  );
  return (
    <div class={`side ${open ? "open" : ""}`}>
      {host.value !== null && (
        <Notice
          actions={
            <button type="button" onClick={() => lookAt(null)}>
              Back to this host
            </button>
          }
        >
          Looking at host <strong>{host.value}</strong>
        </Notice>
      )}
      <nav aria-label="Host">
        <a class="brand" href={href("overview")}>
          <img src={icon} alt="" />
          OpenVSL
        </a>
        <ul>{link("overview")}</ul>
      </nav>
      <nav aria-label="Device">
        <h2>Device</h2>
        {devices.value.length > 0 ? (
          <>
            <label class="spoken" for="device">
              Device that these pages are of
            </label>
            <select
              id="device"
              value={name ?? ""}
              onChange={(event) => {
                const chosen = event.currentTarget.value;
                choose(chosen);
                if (isDevicePage(page)) go(page, chosen);
              }}
            >
              <Options of={devices.value.map((device) => device.name)} />
            </select>
          </>
        ) : (
          <p class="muted small nothing">none attached</p>
        )}
        <ul>{DEVICE_PAGES.map((to) => link(to, name))}</ul>
      </nav>
      <nav aria-label="System">
        <h2>System</h2>
        <ul>{HOST_PAGES.filter((to) => to !== "overview").map((to) => link(to))}</ul>
      </nav>
    </div>
  );
}

function Connection() {
  const at = latest.value?.at_ms;
  if (phase.value === "offline") {
    return (
      <span class="state critical" role="status">
        Offline
      </span>
    );
  }
  if (phase.value === "starting" || at === undefined) return <span class="muted small">Connecting…</span>;
  return (
    <span class="muted small" title="Time of the newest figures">
      {clock(at)}
    </span>
  );
}

/** Says that the service is gone, and since when; the page below shows what was last known. */
function Offline() {
  if (phase.value !== "offline") return null;
  return (
    <Notice tone="critical">
      <strong>
        {host.value === null ? "The service" : `Host ${host.value}`} does not answer
        {lostAt.value !== null && ` since ${clock(lostAt.value)}`}.
      </strong>{" "}
      What is shown below is the last that was known.
      <p>
        {trouble.value?.kind === "offline" ? "" : `${trouble.value?.message ?? ""}. `}
        It is asked again every few seconds. On its machine, <code>vsl up</code> starts it.
      </p>
    </Notice>
  );
}

function Toasts() {
  return (
    <div class="toasts" aria-live="polite">
      {said.value.map(({ id, tone, what, help }) => (
        <Notice
          key={id}
          tone={tone}
          actions={
            <button type="button" class="quiet" aria-label="Put away" onClick={() => putAway(id)}>
              ×
            </button>
          }
        >
          <strong>{what}</strong>
          {help && <p class="small">{help}</p>}
        </Notice>
      ))}
    </div>
  );
}
