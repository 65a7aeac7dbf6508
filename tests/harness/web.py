"""The service's HTTP API over TCP, as programs and browsers use it."""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator
from urllib.parse import urlsplit

from harness.check import check, equal
from harness.world import World

PREFIX = "/api/v1"


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> object:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode(errors="replace")


@dataclass
class Web:
    """A service, and who asks."""

    address: str
    headers: dict[str, str] = field(default_factory=dict)
    context: ssl.SSLContext | None = None

    def connection(self, timeout: float = 30) -> http.client.HTTPConnection:
        """A new connection to it."""
        parts = urlsplit(self.address)
        if parts.scheme == "https":
            return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout, context=self.context)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)

    def ask(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Answer:
        """Sends a request; paths that begin with a slash only are below the API's prefix."""
        whole = path[1:] if path.startswith("!") else PREFIX + path
        connection = self.connection()
        try:
            data = None if body is None else json.dumps(body).encode()
            sent = {"Content-Type": "application/json", **self.headers, **(headers or {})}
            connection.request(method, whole, data, {name: value for name, value in sent.items() if value is not None})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> object:
        """`GET` that must succeed."""
        return self.do("GET", path)

    def do(self, method: str, path: str, body: object = None, status: int | None = None) -> object:
        """A request that must succeed; its JSON."""
        answer = self.ask(method, path, body)
        good = 200 <= answer.status < 300 if status is None else answer.status == status
        check(good, f"{method} {path}: {answer.status} {answer.text}")
        return answer.json if answer.body else None

    def refused(self, status: int, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> dict:
        """A request that must be refused so."""
        answer = self.ask(method, path, body, headers)
        equal(answer.status, status, f"{method} {path} with {headers}: {answer.text}")
        check({"error", "help", "kind"} <= set(answer.json), f"{method} {path}: not a failure like others: {answer.text}")
        return answer.json

    def events(self, path: str = "/stream", timeout: float = 30) -> Iterator[tuple[str, object]]:
        """Server-sent events, as they come."""
        connection = self.connection(timeout)
        connection.request("GET", PREFIX + path, headers=self.headers)
        answer = connection.getresponse()
        equal(answer.status, 200, f"GET {path}")
        try:
            name, data = "message", []
            for raw in answer:
                line = raw.decode().rstrip("\n").rstrip("\r")
                if line.startswith("event:"):
                    name = line[6:].strip()
                elif line.startswith("data:"):
                    data.append(line[5:].strip())
                elif not line and data:
                    yield name, json.loads("\n".join(data))
                    name, data = "message", []
        finally:
            connection.close()


def state(world: World) -> Path:
    """Where the service of a world keeps what it remembers."""
    return world.dir / "state"


def up(world: World, *options: object) -> Web:
    """Starts the service with its API on loopback; the token's holder asks."""
    shown = json.loads(world.vsl("up", "--listen", "127.0.0.1:0", *options, "--json").out)
    [address] = [address for address in shown["web"] if address.startswith("http://")]
    return Web(address, {"Authorization": f"Bearer {token(world)}"})


def token(world: World) -> str:
    """The service's token."""
    shown = json.loads(world.vsl("console", "--json").out)["address"]
    return shown.rsplit("#token=", 1)[1]
