"""The API over TCP: token, accounts, roles, sessions; foreign pages, names and floods refused; TLS off loopback; an audit log without secrets."""

import json
import socket
import ssl

from harness import MIB, World, check, equal
from harness.certificates import make
from harness.web import Web, up

OURS = True


def run(world: World) -> None:
    refused = world.vsl("up", "--foreground", "--listen", "0.0.0.0:0", fails=True).text
    check("--tls-certificates" in refused, f"listening everywhere without TLS: {refused}")
    web = up(world)
    nobody = Web(web.address)
    for method, path in [("GET", "/devices"), ("GET", "/stream"), ("GET", "/openapi.json"), ("POST", "/shutdown"), ("GET", "!/metrics")]:
        if path == "/openapi.json":
            equal(nobody.ask(method, path).status, 200, "the description, which holds nothing of anybody")
        else:
            equal(nobody.refused(401, method, path, {} if method == "POST" else None)["kind"], "unauthenticated", path)
    equal(web.get("/session"), {"name": "token", "role": "administrator", "via": "token"}, "who the token's holder is")
    strangers(web)
    roles(world, web, nobody)
    guessing(web)
    flood(web)
    world.vsl("down")
    secure(world)


def strangers(web: Web) -> None:
    for headers in [
        {"Host": "evil.example.org"},
        {"Host": "evil.example.org:80"},
        {"Origin": "http://evil.example.org"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ]:
        equal(web.refused(403, "GET", "/devices", None, headers)["kind"], "forbidden", str(headers))
    ours = web.address.rstrip("/")
    equal(web.ask("GET", "/devices", None, {"Origin": ours, "Sec-Fetch-Site": "same-origin"}).status, 200, "our own page")
    web.refused(400, "POST", "/devices", "x" * 70_000)
    # Nonsense instead of HTTP ends its own connection.
    with socket.create_connection((web.address.split("//")[1].split(":")[0], int(web.address.rstrip("/").rsplit(":", 1)[1])), 10) as s:
        s.sendall(b"\x16\x03\x01\x02\x00" + b"\xff" * 64 + b"\r\n\r\n")
        s.settimeout(10)
        while s.recv(4096):
            pass
    equal(web.ask("GET", "/version").status, 200, "after nonsense")


def roles(world: World, web: Web, nobody: Web) -> None:
    (world.dir / "password").write_text("only for looking\n")
    world.vsl("account", "add", "vera", "--role", "viewer", "--password-file", world.dir / "password")
    wrong = nobody.ask("POST", "/session", {"name": "vera", "password": "only for locking"})
    equal((wrong.status, wrong.headers["Set-Cookie"]), (401, None), "a wrong password")
    entered = nobody.ask("POST", "/session", {"name": "vera", "password": "only for looking"})
    equal(entered.status, 200, "the right password")
    cookie = entered.headers["Set-Cookie"]
    check("HttpOnly" in cookie and "SameSite=Strict" in cookie, cookie)
    vera = Web(web.address, {"Cookie": cookie.split(";")[0]})
    equal(vera.get("/session")["via"], "session", "how vera got in")
    vera.refused(403, "POST", "/devices", {"path": "memory:64MiB"})
    vera.refused(403, "GET", "/accounts")
    vera.refused(403, "GET", "/audit")
    key = world.vsl("account", "key", "vera", "--note", "test").out.strip()
    by_key = Web(web.address, {"Authorization": f"Bearer {key}"})
    equal(by_key.get("/session")["via"], "key", "how a key gets in")
    world.vsl("account", "change", "vera", "--role", "operator")
    equal(vera.do("POST", "/devices", {"path": f"memory:{64 * MIB}", "name": "m"})["name"], "m", "what an operator attaches")
    vera.refused(403, "POST", "/devices/m/format", {"confirm": "m"})
    vera.do("POST", "/devices/m/detach", {})
    text = world.vsl("audit", "--json").out
    entries = json.loads(text)["entries"]
    [attach] = [entry for entry in entries if entry["path"] == "/devices" and entry["status"] == 201]
    equal((attach["who"], attach["via"], attach["role"]), ("vera", "session", "operator"), "who attached")
    check(any(entry["status"] == 403 and entry["path"] == "/devices/m/format" for entry in entries), "a refusal is not in the log")
    state = [path for path in (world.dir).rglob("*") if path.is_file() and path.suffix in (".jsonl", ".json", ".log")]
    for path in state:
        kept = path.read_text(errors="replace")
        check("only for looking" not in kept and key not in kept, f"{path} holds a secret")
    vera.do("DELETE", "/session")
    vera.refused(401, "GET", "/devices")
    world.vsl("account", "remove", "vera")
    by_key.refused(401, "GET", "/devices")


def guessing(web: Web) -> None:
    sign_in = {"name": "nobody", "password": "guess"}
    kinds = [web.ask("POST", "/session", sign_in, {"Authorization": None}).json["kind"] for _ in range(8)]
    equal(kinds[-1], "too-many", f"the eighth wrong password: {kinds}")


def flood(web: Web) -> None:
    # The wrong keys above bar this address for a minute, so the socket's owner looks whether the service lives.
    connection = web.connection()
    statuses = []
    for _ in range(600):
        connection.request("GET", "/nothing")
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()
    check(429 in statuses, f"600 requests at once: {set(statuses)}")


def secure(world: World) -> None:
    pki = make(world)
    refused = world.vsl("up", "--foreground", "--listen", "0.0.0.0:0", "--tls-certificates", pki, fails=True).text
    check("account" in refused, f"listening everywhere without an account: {refused}")
    world.vsl("up")
    world.vsl("account", "add", "root", "--role", "administrator", "--no-password")
    key = world.vsl("account", "key", "root").out.strip()
    world.vsl("down")
    shown = json.loads(world.vsl("up", "--listen", "0.0.0.0:0", "--tls-certificates", pki, "--json").out)
    [address] = shown["web"]
    check(address.startswith("https://"), address)
    context = ssl.create_default_context(cafile=pki / "ca-cert.pem")
    web = Web(address.replace("0.0.0.0", "127.0.0.1"), {"Authorization": f"Bearer {key}"}, context)
    equal(web.get("/session")["name"], "root", "over TLS")
    plain = Web(web.address.replace("https", "http"), web.headers)
    try:
        answer = plain.ask("GET", "/version")
        check(False, f"answered without TLS: {answer.status}")
    except OSError:
        pass
    except Exception as error:  # a broken line is what a TLS server sends to a client without it
        check("BadStatusLine" in type(error).__name__ or "RemoteDisconnected" in type(error).__name__, repr(error))
