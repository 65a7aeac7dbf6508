"""Hosts over TLS: one that shows the certificate it was added with, or one signed by the authority given, is asked; another certificate is refused, and said; the key goes to nobody else."""

import http.server
import json
import ssl
import threading
from pathlib import Path

from harness import World, check, equal
from harness.certificates import make, self_signed
from harness.web import Web, up

OURS = True


class Impostor(http.server.BaseHTTPRequestHandler):
    """Takes the other's place, and notes what it is asked."""

    def do_GET(self) -> None:
        self.server.asked.append(self.headers["Authorization"])
        self.send_response(404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def far(world: World, *arguments: object) -> str:
    """The program on the other host."""
    other = world.dir / "other"
    environment = ["env", f"OPENVSL_RUNTIME_DIR={other}", f"OPENVSL_STATE_DIR={other}/state"]
    return world.run(*environment, world.vsl_path, *arguments, fails=None if "down" in arguments else False).out


def serve(world: World, pki: Path, port: int) -> str:
    """Starts the other host's service on all addresses with a certificate; where it is."""
    shown = json.loads(far(world, "up", "--listen", f"0.0.0.0:{port}", "--tls-certificates", pki, "--json"))
    return shown["web"][0].replace("0.0.0.0", "127.0.0.1")


def host(web: Web, name: str = "db1") -> dict:
    """How another host stands."""
    [found] = [one for one in web.get("/hosts") if one["name"] == name]
    return found


def run(world: World) -> None:
    web = up(world)
    first, second = self_signed(world, "first"), self_signed(world, "second")
    signed = make(world)
    try:
        far(world, "up")
        far(world, "account", "add", "console", "--role", "operator", "--no-password")
        (world.dir / "key").write_text(far(world, "account", "key", "console"))
        far(world, "down", "--force")
        address = serve(world, first, 0)
        port = int(address.rstrip("/").rsplit(":", 1)[1])
        add = lambda name, *certificate: world.vsl("hosts", "add", name, address, "--key-file", world.dir / "key", *certificate)
        add("db1", "--certificate", first / "server-cert.pem")
        add("nobody")
        world.wait(lambda: host(web)["reachable"], "the host with the certificate it was added with", 10)
        equal(web.get("/hosts/db1/devices"), [], "devices there")
        world.wait(lambda: host(web, "nobody")["error"], "the host that no certificate was given for", 10)
        check("UnknownIssuer" in host(web, "nobody")["error"] or "CaUsed" in host(web, "nobody")["error"], f"{host(web, 'nobody')}")

        far(world, "down", "--force")
        equal(serve(world, second, port), address, "where the other host is")
        world.wait(lambda: "does not vouch" in (host(web)["error"] or ""), "the changed certificate to be said", 15)
        check(not host(web)["reachable"], f"{host(web)}")
        failure = web.refused(502, "GET", "/hosts/db1/devices")
        check("does not vouch" in failure["error"] and "remove the host" in failure["help"], f"{failure}")
        check("does not vouch" in world.vsl("hosts").out, "vsl hosts")
        far(world, "down", "--force")

        equal(impostor(world, web, second, port), [], "what somebody else in its place was told")
        serve(world, first, port)
        world.wait(lambda: host(web)["reachable"], "the host with its own certificate again", 15)
        far(world, "down", "--force")
        chained(world, web, signed, port, add)
    finally:
        far(world, "down", "--force")


def impostor(world: World, web: Web, pki: Path, port: int) -> list[str]:
    """Somebody else takes its port, with a certificate of its own: the keys that they were sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki / "server-cert.pem", pki / "server-key.pem")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Impostor)
    server.asked = []
    server.handle_error = lambda *_: None
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for _ in range(3):
        web.refused(502, "GET", "/hosts/db1/devices")
    server.shutdown()
    server.server_close()
    return server.asked


def chained(world: World, web: Web, signed: Path, port: int, add) -> None:
    """A certificate that an authority signed: trusted by the authority, and by itself, under the name that is in it only where the authority counts."""
    serve(world, signed, port)
    add("by-authority", "--certificate", signed / "ca-cert.pem")
    add("by-itself", "--certificate", signed / "server-cert.pem")
    for name in ["by-authority", "by-itself"]:
        world.wait(lambda: host(web, name)["reachable"], f"the host {name}", 10)
    far(world, "down", "--force")
    elsewhere = make(world, "elsewhere", "DNS:db2.example.org", authority=signed)
    serve(world, elsewhere, port)
    world.wait(lambda: "not valid for name" in (host(web, "by-authority")["error"] or ""), "the name in its certificate to be said", 15)
