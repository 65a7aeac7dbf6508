import { useState } from "preact/hooks";
import icon from "../icon.svg";
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
      <form
        class="panel"
        aria-label="Sign in"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
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
          <div class="field">
            <label for="token">Token or access key</label>
            <input
              id="token"
              type="password"
              autocomplete="off"
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
            />
          </div>
        ) : (
          <>
            <div class="field">
              <label for="name">Name</label>
              <input
                id="name"
                type="text"
                autocomplete="username"
                value={name}
                onInput={(event) => setName(event.currentTarget.value)}
              />
            </div>
            <div class="field">
              <label for="password">Password</label>
              <input
                id="password"
                type="password"
                autocomplete="current-password"
                value={password}
                onInput={(event) => setPassword(event.currentTarget.value)}
              />
            </div>
          </>
        )}
        <button
          type="submit"
          class="primary"
          disabled={busy || (way === "token" ? token.trim() === "" : name.trim() === "")}
        >
          {busy ? "Signing in…" : "Sign in"}
        </button>
        <Notice>
          On the service's machine, <code>vsl console</code> prints an address that signs in by itself.
        </Notice>
      </form>
    </main>
  );
}
