"""Alerts over TLS: by STARTTLS, by TLS from the first byte and to https reach servers of our own authority; a stranger's certificate, another name's, and a server without STARTTLS are refused, and the alert says so."""

import asyncio
import http.server
import json
import os
import ssl
import threading
from pathlib import Path

from aiosmtpd.smtp import SMTP, AuthResult

from harness import MIB, World, check, equal
from harness.certificates import make
from harness.fio import fio
from harness.web import Web, up

OURS = True
PASSWORD = "not for the wire"


class Mail:
    """Mail servers on ports of their own, and what they got: whether over TLS, and the mail."""

    def __init__(self) -> None:
        self.got: list[tuple[bool, bytes]] = []
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def serve(self, implicit: ssl.SSLContext | None = None, **options: object) -> int:
        """One more server, which lets nobody in without the password; its port."""
        make = lambda: SMTP(self, authenticator=login, auth_required=True, loop=self.loop, **options)
        starting = self.loop.create_server(make, "127.0.0.1", 0, ssl=implicit)
        return asyncio.run_coroutine_threadsafe(starting, self.loop).result(10).sockets[0].getsockname()[1]

    async def handle_DATA(self, server: SMTP, session: object, envelope: object) -> str:
        """Keeps a mail."""
        self.got.append((server.transport.get_extra_info("sslcontext") is not None, envelope.content))
        return "250 taken"


class Hook(http.server.BaseHTTPRequestHandler):
    """A webhook."""

    def do_POST(self) -> None:
        self.server.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class HookServer(http.server.ThreadingHTTPServer):
    """Serves it with a certificate."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), Hook)
        self.got: list[dict] = []
        # The handshake is made by the thread that serves the connection, so that one that fails fails alone.
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: object, address: object) -> None:
        pass


def context(pki: Path) -> ssl.SSLContext:
    """A server's side of TLS."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(pki / "server-cert.pem", pki / "server-key.pem")
    return made


def login(_server: object, _session: object, _envelope: object, _mechanism: str, given: object) -> AuthResult:
    """Who has the password is let in."""
    return AuthResult(success=given.password == PASSWORD.encode())


class Told:
    """Who gets alerts, and what comes of a try."""

    def __init__(self, web: Web) -> None:
        self.web = web

    def trial(self, smtp: dict | None, *hooks: str) -> list[str | None]:
        """Says who gets alerts, and tries."""
        self.web.do("PUT", "/notifications", {"smtp": smtp, "webhooks": [{"url": url} for url in hooks], "least_severity": "warning"})
        return [sent["error"] for sent in self.web.do("POST", "/notifications/test")]


def smtp(port: int, security: str, host: str = "localhost") -> dict:
    """A mail server, which is signed in to."""
    who = {"user": "vsl", "password": PASSWORD, "from": "vsl@example.org", "to": ["ops@example.org"]}
    return {"host": host, "port": port, "security": security, **who}


def run(world: World) -> None:
    pki, stranger = make(world), make(world, "stranger")
    elsewhere = make(world, "elsewhere", "DNS:db1.example.org", authority=pki)
    os.environ["SSL_CERT_FILE"] = str(pki / "ca-cert.pem")
    web = up(world)
    told = Told(web)
    mail = Mail()
    starttls = lambda pki: mail.serve(tls_context=context(pki), require_starttls=True)
    port = {
        "starttls": starttls(pki),
        "tls": mail.serve(context(pki), auth_require_tls=False),
        "stranger": starttls(stranger),
        "elsewhere": starttls(elsewhere),
        "stripped": mail.serve(auth_require_tls=False),
    }
    hooks = {name: HookServer(context(which)) for name, which in [("good", pki), ("stranger", stranger), ("elsewhere", elsewhere)]}
    url = {name: f"https://localhost:{hook.server_address[1]}/secret-path" for name, hook in hooks.items()}
    equal(told.trial(smtp(port["starttls"], "starttls"), url["good"]), [None, None], "STARTTLS and https")
    equal(told.trial(smtp(port["tls"], "tls", "127.0.0.1")), [None], "TLS from the first byte, by an address")
    equal([secure for secure, _ in mail.got], [True, True], "what the mail servers got, over TLS")
    check(all(b"somebody tries whether alerts arrive" in text for _, text in mail.got), f"{mail.got}")
    mail.got.clear()
    refused(told, port, url)
    alert(world, web, told, smtp(port["stranger"], "starttls"), url, hooks["good"])
    equal((mail.got, hooks["stranger"].got, hooks["elsewhere"].got), ([], [], []), "what those who were refused got")


def refused(told: Told, port: dict[str, int], url: dict[str, str]) -> None:
    """Whoever cannot prove to be who was meant gets nothing, and it is said why."""
    for name, words in [("stranger", "UnknownIssuer"), ("elsewhere", "not valid for name"), ("stripped", "STARTTLS")]:
        [error] = told.trial(smtp(port[name], "starttls"))
        check(error and words.lower() in error.lower(), f"mail to {name}: {error}, expected {words}")
    [error] = told.trial(smtp(port["starttls"], "tls"))
    check(error, "mail went by TLS from the first byte to a server that begins in the clear")
    for name, words in [("stranger", "UnknownIssuer"), ("elsewhere", "not valid for name")]:
        [error] = told.trial(None, url[name])
        check(error and words.lower() in error.lower(), f"a webhook of {name}: {error}, expected {words}")


def alert(world: World, web: Web, told: Told, mail: dict, url: dict[str, str], good: HookServer) -> None:
    """A real alert says who did not get it and why; nobody is told the webhook's path."""
    told.trial(mail, url["good"], url["elsewhere"])
    good.got.clear()
    rule = {"metric": "write_iops", "comparison": "above", "threshold": 1, "severity": "critical"}
    web.do("PUT", "/alert-rules/busy", rule)
    device = world.device(64 * MIB)
    fio(world, device, "--rw=randwrite", "--bs=4k", "--runtime=3", "--time_based", "--rate_iops=200")
    listed = lambda: [one for which in ("", "/history") for one in web.get(f"/alerts{which}")["alerts"] if one["rule"] == "busy"]
    world.wait(lambda: any(one.get("sent") for one in listed()), "what came of sending the alert", 20)
    [one] = listed()
    errors = [sent["error"] for sent in one["sent"]]
    check("UnknownIssuer" in errors[0] and errors[1] is None and "not valid for name" in errors[2], f"{one}")
    check(good.got and good.got[0]["rule"] == "busy" and "sent" not in good.got[0], f"what the good webhook got: {good.got}")
    shown = world.vsl("alerts").out + world.vsl("alerts", "--history").out
    check(f"not sent to localhost:{mail['port']}: " in shown, shown)
    world.vsl("bugreport", "-o", world.dir / "report.tar.gz")
    for text in [shown, json.dumps(listed()), world.run("tar", "-xzOf", world.dir / "report.tar.gz").out]:
        check("secret-path" not in text and PASSWORD not in text, "a secret is told")
    check("localhost" in (world.dir / "state" / "openvsl.log").read_text(), "the log does not say who was not reached")
