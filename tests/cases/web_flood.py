"""Strangers with slow connections, wrong keys and floods of requests: whoever has signed in gets through at once, and what people did stays in the audit log."""

import http.client
import json
import socket

from urllib.parse import urlsplit

from harness import World, check, equal
from harness.web import Web, up

OURS = True
SLOW = 300
HEAD = b"POST /api/v1/devices HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n"

def run(world: World) -> None:
    web = up(world)
    world.vsl("account", "add", "ada", "--role", "administrator", "--no-password")
    key = world.vsl("account", "key", "ada").out.strip()
    ada = Web(web.address, {"Authorization": f"Bearer {key}"})
    mine = [ada.ask("POST", "/devices", {"path": "memory:64MiB", "name": f"m{n}"}).status for n in range(3)]
    equal(mine, [201, 201, 201], "what an administrator did")
    slow(world, web, ada)
    wrong_keys(world, web, ada)
    flood(world, web, ada)
    streams(web, ada)

def open_slowly(web: Web, count: int, sent: bytes) -> list[socket.socket]:
    """Connections that have sent a part of a request, and say no more."""
    parts = urlsplit(web.address)
    sockets = []
    for _ in range(count):
        sock = socket.create_connection((parts.hostname, parts.port), timeout=10)
        sock.sendall(sent)
        sockets.append(sock)
    return sockets

def slow(world: World, web: Web, ada: Web) -> None:
    """Many connections in the middle of a head, and in the middle of a body."""
    kept = ada.connection()
    kept.request("GET", "/api/v1/version", headers=ada.headers)
    kept.getresponse().read()
    for sent in [HEAD, HEAD + b"\r\n{"]:
        sockets = open_slowly(web, SLOW, sent)
        for sock in sockets:
            try:
                sock.sendall(b"X")
            except OSError:
                pass  # It made room for another.
        equal(ada.ask("GET", "/devices").status, 200, "what somebody with a key gets meanwhile")
        equal(json.loads(world.vsl("status", "--json").out)["devices"][0]["state"], "attached", "over the Unix socket")
        # A connection of somebody who is known stays, however many come.
        kept.request("GET", "/api/v1/version", headers=ada.headers)
        equal(kept.getresponse().read() != b"", True, "an older connection of somebody with a key")
        closed = sum(is_closed(sock) for sock in sockets)
        check(closed >= SLOW - 64, f"{SLOW - closed} of {SLOW} slow connections of one address are still open")
        for sock in sockets:
            sock.close()

def is_closed(sock: socket.socket) -> bool:
    """Whether the other end has closed it."""
    sock.setblocking(False)
    try:
        return sock.recv(1 << 16) == b"" or is_closed(sock)
    except BlockingIOError:
        return False
    except OSError:
        return True

def wrong_keys(world: World, web: Web, ada: Web) -> None:
    """However many wrong keys come from an address, the right one counts."""
    stranger = Web(web.address, {"Authorization": "Bearer wrong"})
    for _ in range(20):
        # The slow ones were requests of this address as well, and all at once: for a while it asks too often.
        world.wait(lambda: is_wrong(stranger), "the refusal of a wrong key")
    equal(ada.ask("GET", "/devices").status, 200, "the right key from the same address")

def is_wrong(stranger: Web) -> bool:
    """Whether a key is refused as a wrong one; nothing else is allowed but that its address asks too often."""
    answer = stranger.ask("GET", "/devices")
    check(answer.status in (401, 429), f"a wrong key: {answer.status} {answer.text}")
    check({"error", "help", "kind"} <= set(answer.json), f"not a failure like others: {answer.text}")
    return answer.status == 401

def flood(world: World, web: Web, ada: Web) -> None:
    """Requests that are not signed in leave what people did where it was, and nothing of themselves."""
    before = [entry["path"] for entry in ada.get("/audit")["entries"]]
    check(before.count("/devices") >= 3, f"{before}")
    size = (world.dir / "state/audit.jsonl").stat().st_size
    parts = urlsplit(web.address)
    statuses: set[int] = set()
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    # More than the log remembers, as fast as the address may ask.
    for _ in range(3000):
        try:
            connection.request("POST", "/api/v1/devices", json.dumps({"path": "/secret-of-a-stranger" * 20}), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            statuses.add(answer.status)
        except (http.client.HTTPException, OSError):
            connection.close()
    check(statuses <= {401, 429} and 401 in statuses, f"{statuses}")
    after = [entry["path"] for entry in ada.get("/audit")["entries"]]
    equal(after, before, "the audit log")
    equal((world.dir / "state/audit.jsonl").stat().st_size, size, "bytes of the audit log")
    text = (world.dir / "state/audit.jsonl").read_text() + (world.dir / "state/openvsl.log").read_text()
    check("secret-of-a-stranger" not in text, "a stranger's body was kept")
    check("of nobody who has signed in" in text, "the log does not tell of the refusals")

def streams(web: Web, ada: Web) -> None:
    """One account's streams leave room for another's."""
    held = []
    for _ in range(32):
        connection = ada.connection()
        connection.request("GET", "/api/v1/stream", headers=ada.headers)
        held.append(connection)
        equal(connection.getresponse().status, 200, "a stream")
    ada.refused(429, "GET", "/stream")
    other = web.connection()
    other.request("GET", "/api/v1/stream", headers=web.headers)
    equal(other.getresponse().status, 200, "another account's stream")
