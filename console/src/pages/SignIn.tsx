import { useState } from "preact/hooks";
import icon from "../icon.svg";
import { Button } from "../parts/Button";
import { Input } from "../parts/Field";
import { Form } from "../parts/Form";
import { Notice, Trouble } from "../parts/Notice";
import { Switches } from "../parts/Switches";
import { signIn, trouble } from "../state/link";

type Way = "token" | "account";

export function SignIn() {
  const [way, setWay] = useState<Way>("token");
  const [token, setToken] = useState("");
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    setError(null);
    try {
      await signIn(way === "token" ? { token: token.trim() } : { name: name.trim(), password });
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return (
    <main class="sign-in">
      <Form class="panel" aria-label="Sign in" onSubmit={submit}>
        <header class="row">
          <img src={icon} width="28" height="28" alt="" />
          <h1>OpenVSL</h1>
        </header>
        {error !== null ? <Trouble of={error} /> : trouble.value && <Trouble of={trouble.value} />}
        <Switches<Way>
          label="Sign in with"
          value={way}
          of={[
            { value: "token", label: "Token or access key" },
            { value: "account", label: "Name and password" },
          ]}
          onChange={setWay}
        />
        {way === "token" ? (
          <Input
            label="Token or access key"
            type="password"
            autocomplete="off"
            value={token}
            onSet={setToken}
          />
        ) : (
          <>
            <Input label="Name" autocomplete="username" value={name} onSet={setName} />
            <Input
              label="Password"
              type="password"
              autocomplete="current-password"
              value={password}
              onSet={setPassword}
            />
          </>
        )}
        <Button
          type="submit"
          class="primary"
          disabled={busy || (way === "token" ? token.trim() === "" : name.trim() === "")}
        >
          {busy ? "Signing in…" : "Sign in"}
        </Button>
        <Notice>
          On the service's machine, <code>vsl console</code> prints an address that signs in by itself.
        </Notice>
      </Form>
    </main>
  );
}
