import { useState } from "preact/hooks";
import { post, put } from "../../api/client";
import type { Notifications as Kept, Security, Sent, Severity, Smtp, Webhook } from "../../api/types";
import { Button } from "../../parts/Button";
import { Check, Input, Select } from "../../parts/Field";
import { Asking, Notice } from "../../parts/Notice";
import { Panel } from "../../parts/Panel";
import { act } from "../../state/action";
import { may } from "../../state/link";
import { useResource } from "../../state/resource";
import { SEVERITIES } from "./severity";

const MAIL: Smtp = {
  host: "",
  port: 587,
  security: "starttls",
  user: null,
  password: null,
  from: "",
  to: [],
};

const SECURITIES: readonly Security[] = ["none", "starttls", "tls"];

/** Where alerts are sent: by mail and to webhooks. Secrets are never shown; leaving them empty keeps them. */
export function Notifications() {
  const { value, error } = useResource<Kept>(may("administrator") ? "/notifications" : null);
  if (!may("administrator")) return <Notice>Only administrators see where alerts are sent.</Notice>;
  if (value === null) return <Asking error={error} what="Notifications" />;
  return <Sending sent={value} />;
}

function Sending({ sent }: { sent: Kept }) {
  const [least, setLeast] = useState<Severity>(sent.least_severity);
  const [mail, setMail] = useState<Smtp | null>(sent.smtp ?? null);
  const [hooks, setHooks] = useState<readonly Webhook[]>(sent.webhooks);
  const [tested, setTested] = useState<readonly Sent[] | null>(null);
  const save = () =>
    act("Notifications are set", () =>
      put("/notifications", { smtp: mail, webhooks: hooks, least_severity: least }),
    );
  const test = async () => {
    setTested(null);
    await act("The test is over", async () => setTested(await post<Sent[]>("/notifications/test")));
  };
  return (
    <Panel title="Notifications" onSubmit={save}>
      <Select
        label="Sent from this severity on"
        class="narrow"
        value={least}
        of={SEVERITIES}
        onSet={setLeast}
      />
      <Check value={mail !== null} onSet={(on) => setMail(on ? MAIL : null)}>
        <strong>By mail</strong>
      </Check>
      {mail && <Mail mail={mail} onSet={setMail} />}
      <h3>Webhooks</h3>
      {hooks.map((hook, position) => (
        <div class="row" key={position}>
          <Input
            label="Address"
            class="grow"
            type="url"
            required
            value={hook.url}
            onSet={(url) => setHooks(hooks.with(position, { ...hook, url }))}
          />
          <Input
            label="Secret for its signature"
            class="grow"
            type="password"
            autocomplete="off"
            placeholder="unchanged"
            value={hook.secret ?? ""}
            onSet={(secret) => setHooks(hooks.with(position, { ...hook, secret: secret || null }))}
          />
          <Button class="bottom" onClick={() => setHooks(hooks.toSpliced(position, 1))}>
            Remove
          </Button>
        </div>
      ))}
      <div class="row">
        <Button onClick={() => setHooks([...hooks, { url: "", secret: null }])}>Add a webhook</Button>
      </div>
      <div class="row end">
        <Button onClick={test}>Send a test</Button>
        <Button type="submit" class="primary">
          Save
        </Button>
      </div>
      {tested?.length === 0 && (
        <Notice>There is nowhere to send it: add a mail server or a webhook, and save.</Notice>
      )}
      {tested?.map(({ to, error }, position) => (
        <Notice key={position} tone={error ? "critical" : "ok"}>
          {to}: {error ?? "sent"}
        </Notice>
      ))}
    </Panel>
  );
}

function Mail({ mail, onSet }: { mail: Smtp; onSet: (mail: Smtp) => void }) {
  const change = (part: Partial<Smtp>) => onSet({ ...mail, ...part });
  return (
    <div class="fields">
      <Input label="Server" autocomplete="off" value={mail.host} onSet={(host) => change({ host })} />
      <Input
        label="Port"
        type="number"
        autocomplete="off"
        value={String(mail.port)}
        onSet={(port) => change({ port: Number(port) })}
      />
      <Select
        label="Security"
        value={mail.security}
        of={SECURITIES}
        onSet={(security) => change({ security })}
      />
      <Input
        label="User"
        autocomplete="off"
        value={mail.user ?? ""}
        onSet={(user) => change({ user: user || null })}
      />
      <Input
        label="Password"
        type="password"
        autocomplete="off"
        placeholder="unchanged"
        value={mail.password ?? ""}
        onSet={(password) => change({ password: password || null })}
      />
      <Input label="From" autocomplete="off" value={mail.from} onSet={(from) => change({ from })} />
      <Input
        label="To, with commas"
        autocomplete="off"
        value={mail.to.join(", ")}
        onSet={(to) => change({ to: to.split(",").map((one) => one.trim()) })}
      />
    </div>
  );
}
