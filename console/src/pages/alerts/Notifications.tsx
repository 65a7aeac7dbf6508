import { useState } from "preact/hooks";
import { post, put } from "../../api/client";
import type { Notifications as Kept, Security, Sent, Severity, Smtp, Webhook } from "../../api/types";
import { Empty, Notice, Trouble } from "../../parts/Notice";
import { act } from "../../state/action";
import { may } from "../../state/link";
import { useResource } from "../../state/resource";

const MAIL: Smtp = {
  host: "",
  port: 587,
  security: "starttls",
  user: null,
  password: null,
  from: "",
  to: [],
};

/** Where alerts are sent: by mail and to webhooks. Secrets are never shown; leaving them empty keeps them. */
export function Notifications() {
  const { value, error } = useResource<Kept>(may("administrator") ? "/notifications" : null);
  if (!may("administrator")) return <Notice>Only administrators see where alerts are sent.</Notice>;
  if (error) return <Trouble of={error} what="Notifications" />;
  if (value === null) return <Empty title="Asking the service…" />;
  return <Form sent={value} />;
}

function Form({ sent }: { sent: Kept }) {
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
    <form
      class="panel"
      aria-label="Notifications"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <header>
        <h2>Notifications</h2>
      </header>
      <div class="field narrow">
        <label for="least">Sent from this severity on</label>
        <select
          id="least"
          value={least}
          onChange={(event) => setLeast(event.currentTarget.value as Severity)}
        >
          {["information", "warning", "critical"].map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={mail !== null}
          onChange={(event) => setMail(event.currentTarget.checked ? MAIL : null)}
        />
        <strong>By mail</strong>
      </label>
      {mail && <Mail mail={mail} onSet={setMail} />}
      <h3>Webhooks</h3>
      {hooks.map((hook, position) => (
        <div class="row" key={position}>
          <div class="field grow">
            <label for={`hook-${position}`}>Address</label>
            <input
              id={`hook-${position}`}
              type="url"
              required
              value={hook.url}
              onInput={(event) => setHooks(hooks.with(position, { ...hook, url: event.currentTarget.value }))}
            />
          </div>
          <div class="field grow">
            <label for={`secret-${position}`}>Secret for its signature</label>
            <input
              id={`secret-${position}`}
              type="password"
              autocomplete="off"
              placeholder="unchanged"
              value={hook.secret ?? ""}
              onInput={(event) =>
                setHooks(hooks.with(position, { ...hook, secret: event.currentTarget.value || null }))
              }
            />
          </div>
          <button type="button" class="bottom" onClick={() => setHooks(hooks.toSpliced(position, 1))}>
            Remove
          </button>
        </div>
      ))}
      <div class="row">
        <button type="button" onClick={() => setHooks([...hooks, { url: "", secret: null }])}>
          Add a webhook
        </button>
      </div>
      <div class="row end">
        <button type="button" onClick={() => void test()}>
          Send a test
        </button>
        <button type="submit" class="primary">
          Save
        </button>
      </div>
      {tested?.length === 0 && (
        <Notice>There is nowhere to send it: add a mail server or a webhook, and save.</Notice>
      )}
      {tested?.map(({ to, error }) => (
        <Notice key={to} tone={error ? "critical" : "ok"}>
          {to}: {error ?? "sent"}
        </Notice>
      ))}
    </form>
  );
}

function Mail({ mail, onSet }: { mail: Smtp; onSet: (mail: Smtp) => void }) {
  const line = (
    id: keyof Smtp,
    label: string,
    value: string,
    set: (text: string) => Partial<Smtp>,
    type: "text" | "number" | "password" = "text",
  ) => (
    <div class="field">
      <label for={`smtp-${id}`}>{label}</label>
      <input
        id={`smtp-${id}`}
        // One element for all three sorts: its type is not the literal that the element's attributes are told apart by.
        type={type as "text"}
        autocomplete="off"
        placeholder={id === "password" ? "unchanged" : undefined}
        value={value}
        onInput={(event) => onSet({ ...mail, ...set(event.currentTarget.value) })}
      />
    </div>
  );
  return (
    <div class="fields">
      {line("host", "Server", mail.host, (host) => ({ host }))}
      {line("port", "Port", String(mail.port), (port) => ({ port: Number(port) }), "number")}
      <div class="field">
        <label for="smtp-security">Security</label>
        <select
          id="smtp-security"
          value={mail.security}
          onChange={(event) => onSet({ ...mail, security: event.currentTarget.value as Security })}
        >
          {["none", "starttls", "tls"].map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </div>
      {line("user", "User", mail.user ?? "", (user) => ({ user: user || null }))}
      {line(
        "password",
        "Password",
        mail.password ?? "",
        (password) => ({ password: password || null }),
        "password",
      )}
      {line("from", "From", mail.from, (from) => ({ from }))}
      {line("to", "To, with commas", mail.to.join(", "), (to) => ({
        to: to.split(",").map((one) => one.trim()),
      }))}
    </div>
  );
}
