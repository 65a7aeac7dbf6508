"""Alerts: a rule fires while a load runs, reaches a mail server and a webhook, is acknowledged, and clears; reasons to doubt a rule are told."""

import hashlib
import hmac
import http.server
import json
import socketserver
import threading

from harness import MIB, World, check, equal
from harness.fio import fio
from harness.web import up

OURS = True
SECRET = "hush"


class Mail(socketserver.StreamRequestHandler):
    """A mail server, as far as somebody who hands mail in needs one."""

    def handle(self) -> None:
        say = lambda line: self.wfile.write(line.encode() + b"\r\n")
        say("220 sink")
        while line := self.rfile.readline():
            verb = line.split()[0].upper() if line.split() else b""
            if verb == b"EHLO":
                say("250 sink")
            elif verb == b"DATA":
                say("354 go on")
                mail = b""
                while (more := self.rfile.readline()) not in (b".\r\n", b""):
                    mail += more
                self.server.got.append(mail.decode())
                say("250 taken")
            elif verb == b"QUIT":
                say("221 bye")
                return
            else:
                say("250 well")


class Hook(http.server.BaseHTTPRequestHandler):
    """A webhook."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def serve(kind: type, handler: type) -> object:
    """Serves on a port of its own, beside the test."""
    server = kind(("127.0.0.1", 0), handler)
    server.got = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def run(world: World) -> None:
    web = up(world)
    device = world.device(256 * MIB)
    mail = serve(socketserver.ThreadingTCPServer, Mail)
    hook = serve(http.server.ThreadingHTTPServer, Hook)
    to = {
        "smtp": {"host": "127.0.0.1", "port": mail.server_address[1], "security": "none", "from": "vsl@example.org", "to": ["ops@example.org"]},
        "webhooks": [{"url": f"http://127.0.0.1:{hook.server_address[1]}/hook", "secret": SECRET}],
        "least_severity": "warning",
    }
    shown = web.do("PUT", "/notifications", to)
    equal(shown["webhooks"][0]["secret"], None, "a secret is shown")
    equal([sent["error"] for sent in web.do("POST", "/notifications/test")], [None, None], "what came of a try")
    equal((len(mail.got), len(hook.got)), (1, 1), "what a try sent")
    web.refused(400, "PUT", "/alert-rules/busy", {"metric": "nothing", "comparison": "above", "threshold": 1, "severity": "warning"})
    world.vsl("alerts", "rule", "busy", "--metric", "write_iops", "--above", "100", "--clear", "10", "--for", "1", "--severity", "critical")

    fio(world, device, "--rw=randwrite", "--bs=4k", "--iodepth=4", "--runtime=6", "--time_based", "--size=64m")
    world.wait(lambda: len(mail.got) >= 3 and len(hook.got) >= 3, "the alert to be raised, cleared and sent twice", 20)
    raised, cleared = [json.loads(body) for _, body in hook.got[1:3]]
    equal((raised["rule"], raised["device"], raised["cleared_ms"]), ("busy", device.name, None), "the alert that was raised")
    equal(cleared["id"], raised["id"], "the alert that was cleared")
    check(cleared["cleared_ms"] > raised["raised_ms"] and raised["value"] >= 100, f"{raised} {cleared}")
    headers, body = hook.got[1]
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    equal({name.lower(): value for name, value in headers.items()}["x-openvsl-signature"], f"sha256={signature}", "the signature")
    check(f"Subject: [OpenVSL] {device.name}: busy critical" in mail.got[1], mail.got[1])
    check(f"Subject: [OpenVSL] {device.name}: busy over" in mail.got[2], mail.got[2])
    check("no alert is active" in world.vsl("alerts").out, "an alert is active still")
    world.vsl("alerts", "acknowledge", raised["id"], "--note", "seen")
    [past] = json.loads(world.vsl("alerts", "--history", "--json").out)["alerts"]
    equal((past["id"], past["note"]), (raised["id"], "seen"), "the alert that is over")
    hook.shutdown(), mail.shutdown()
