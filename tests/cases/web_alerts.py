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


def told(world: World, port: int, url: str) -> None:
    """Says with the program who gets alerts, and gets it wrong on the way."""
    notify = lambda *words, **more: world.vsl("alerts", "notify", *words, **more)
    check("nobody gets alerts" in notify().out, "somebody gets alerts already")
    check("give the mail server's host" in notify("mail", "--port", "25", fails=True).err, "a mail server without a host")
    check("'ops'" in notify("mail", "127.0.0.1", "--from", "vsl@example.org", "--to", "ops", fails=True).err, "nobody's address")
    notify("mail", "127.0.0.1", "--port", "25", "--security", "none", "--from", "vsl@example.org", "--to", "ops@example.org")
    text = notify("mail", "--port", port).out
    check(f"127.0.0.1:{port}, in the clear, from vsl@example.org to ops@example.org" in text, text)
    secret = world.dir / "secret"
    secret.write_text(f"{SECRET}\n")
    notify("webhook", f"{url}/other")
    notify("webhook", url, "--secret-file", secret)
    notify("webhook", f"{url}/other", "--remove")
    check("not posted to" in notify("webhook", f"{url}/other", "--remove", fails=True).err, "nothing to remove")
    equal(json.loads(notify("severity", "warning", "--json").out)["least_severity"], "warning", "the least severity")


def run(world: World) -> None:
    web = up(world)
    device = world.device(256 * MIB)
    mail = serve(socketserver.ThreadingTCPServer, Mail)
    hook = serve(http.server.ThreadingHTTPServer, Hook)
    url = f"http://127.0.0.1:{hook.server_address[1]}/hook"
    told(world, mail.server_address[1], url)
    shown = web.do("GET", "/notifications")
    equal(shown["webhooks"], [{"url": url, "secret": None}], "where alerts are posted, without the secret")
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
    world.vsl("alerts", "rule", "busy", "--remove")
    check("busy" not in world.vsl("alerts", "--rules").out, "a rule that was removed is there still")
    hook.shutdown(), mail.shutdown()
