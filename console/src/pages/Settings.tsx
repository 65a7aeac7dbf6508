import { useState } from "preact/hooks";
import { address, host, post } from "../api/client";
import type { Histories } from "../api/types";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { Switches } from "../parts/Switches";
import { act } from "../state/action";
import { health, version } from "../state/fleet";
import { may, session, signOut } from "../state/link";
import { useResource } from "../state/resource";
import { bytes } from "../text/quantity";
import { type Theme, theme } from "../theme";
import { Accounts } from "./settings/Accounts";

export function SettingsPage() {
  return (
    <>
      <div class="flow">
        <Panel title="Appearance">
          <div class="row">
            <Switches<Theme>
              label="Colours"
              value={theme.value}
              of={[
                { value: "system", label: "As the system" },
                { value: "light", label: "Light" },
                { value: "dark", label: "Dark" },
              ]}
              onChange={(chosen) => {
                theme.value = chosen;
              }}
            />
            <span class="muted small">kept in this browser</span>
          </div>
        </Panel>
        <Panel title="Signed in" aside={<Button onClick={() => act("Signed out", signOut)}>Sign out</Button>}>
          <p>
            As <strong>{session.value?.name ?? "–"}</strong>, with the role of {article(session.value?.role)}.
          </p>
        </Panel>
        <Service />
      </div>
      {may("administrator") ? <Accounts /> : <Notice>Accounts are for administrators.</Notice>}
    </>
  );
}

function article(role: string | undefined): string {
  if (role === undefined) return "nobody";
  return /^[aeiou]/.test(role) ? `an ${role}` : `a ${role}`;
}

function Service() {
  const [stopping, setStopping] = useState(false);
  const kept = useResource<Histories>("/history");
  const stop = () => act("The service is told to stop", () => post("/shutdown", { force: true }));
  return (
    <Panel label="Service" title={host.value === null ? "Service" : `Service on ${host.value}`}>
      <dl class="pairs">
        <dt>Version</dt>
        <dd>
          {version.value?.version ?? "–"}, API {version.value?.api ?? "–"}, process{" "}
          {version.value?.pid ?? "–"}
        </dd>
        <dt>Exports at</dt>
        <dd class="wrap mono">{health.value?.addresses.join(", ") || "–"}</dd>
        <dt>Console at</dt>
        <dd class="wrap mono">{health.value?.web?.join(", ") || "–"}</dd>
        <dt>History</dt>
        <dd>{bytes(kept.value?.file_bytes)}</dd>
        <dt>API</dt>
        <dd>
          <a href={address("/openapi.json")} target="_blank" rel="noopener">
            its description (OpenAPI)
          </a>
        </dd>
      </dl>
      <div class="row">
        {may("administrator") && (
          <a class="button" href={address("/bugreport")} download>
            Bug report
          </a>
        )}
        <Button class="danger" needs="administrator" onClick={() => setStopping(true)}>
          Stop the service…
        </Button>
      </div>
      {stopping && (
        <Dialog
          title="Stop the service"
          onClose={() => setStopping(false)}
          submit={{ label: "Stop it", danger: true, work: stop }}
        >
          <Notice tone="warning">
            Every client is disconnected and every device detached cleanly. This console is served by the
            service: only <code>vsl up</code> brings it back.
          </Notice>
        </Dialog>
      )}
    </Panel>
  );
}
