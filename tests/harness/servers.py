"""Who serves the devices: our daemon, or a server that others wrote, to try the tests themselves."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qs, quote, urlsplit

from harness import liar
from harness.check import check

if TYPE_CHECKING:
    from harness.world import World


@dataclass
class Device:
    """A device that is being served."""

    name: str
    path: Path
    size: int
    uri: str

    @property
    def socket(self) -> Path:
        """The Unix socket it answers on."""
        return Path(parse_qs(urlsplit(self.uri).query)["socket"][0])

    def qemu(self) -> str:
        """The same address, as qemu's tools spell it."""
        return self.uri

    def server_pid(self) -> int:
        """The process that listens on its socket."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(str(self.socket))
            return struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


class Servers(Protocol):
    """A way to serve devices."""

    def serve(self, name: str, size: int, sector: int, path: Path) -> Device:
        """Makes a device and serves it."""

    def revive(self, device: Device) -> None:
        """Serves a device again, after its server was killed."""


def servers(kind: str, world: World) -> Servers:
    """The way of that name."""
    ways = {"vsl": Vsl, "nbdkit": Nbdkit, "qemu": Qemu}
    return ways[kind](world) if kind in ways else Lying(world, kind)


def kill(device: Device) -> None:
    """Kills the server of a device the hard way, and waits until it is gone."""
    pid = device.server_pid()
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while _alive(pid):
        check(time.monotonic() < deadline, f"process {pid} survives SIGKILL")
        time.sleep(0.01)


def _alive(pid: int) -> bool:
    try:
        # A zombie is dead enough: its descriptors, and with them its locks, are gone.
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Vsl:
    """Ours: one daemon, started with the first device."""

    def __init__(self, world: World) -> None:
        self.world = world
        # How the daemon is started, also after it was killed.
        self.options: list[object] = []

    def serve(self, name: str, size: int, sector: int, path: Path) -> Device:
        self.up()
        self.world.vsl("create", path, "--size", size, "--sector-size", sector, "--yes")
        self.world.vsl("attach", path, "--name", name)
        return Device(name, path, size, self.uri(name))

    def up(self) -> None:
        """Starts the daemon unless it runs."""
        self.world.vsl("up", *self.options)

    def revive(self, device: Device) -> None:
        self.up()
        # The daemon attaches what it remembers by itself, unless it was detached by command.
        if self.state(device) is None:
            self.world.vsl("attach", device.path, "--name", device.name)
        self.world.wait(lambda: self.state(device) not in ("detached", "scanning"), f"{device.name} to be attached")
        check(self.state(device) == "attached", f"{device.name} is not attached again: {self.status()}")
        device.uri = self.uri(device.name)

    def state(self, device: Device) -> str | None:
        """What the daemon says the device is doing, if it knows the device."""
        return next((d["state"] for d in self.status()["devices"] if d["name"] == device.name), None)

    def status(self) -> dict:
        """What `vsl status` says of everything."""
        return json.loads(self.world.vsl("status", "--json").out)

    def uri(self, name: str) -> str:
        """The address of a device, as `vsl status` gives it."""
        found = [d["uri"] for d in self.status()["devices"] if d["name"] == name]
        check(found, f"vsl status does not list {name}")
        return found[0]


class StandIn:
    """A server of another make: one process for each device."""

    def __init__(self, world: World) -> None:
        self.world = world

    def serve(self, name: str, size: int, sector: int, path: Path) -> Device:
        with open(path, "wb") as f:
            f.truncate(size)
        device = Device(name, path, size, uri(self.world.dir / f"{name}.sock"))
        self.revive(device)
        return device

    def revive(self, device: Device) -> None:
        device.socket.unlink(missing_ok=True)
        self.world.start(*self.command(device), log=f"{device.name}.log")
        self.world.wait(lambda: answers(device.socket), "the stand-in to answer")

    def command(self, device: Device) -> list[object]:
        """How it is started."""
        raise NotImplementedError


class Nbdkit(StandIn):
    """nbdkit's memory plugin: forgets everything when it ends."""

    def command(self, device: Device) -> list[object]:
        return ["nbdkit", "-f", "-U", device.socket, "memory", device.size]


class Qemu(StandIn):
    """qemu-nbd on a raw file: survives a kill as far as the page cache does."""

    def command(self, device: Device) -> list[object]:
        options = ["-f", "raw", "--discard=unmap", "--persistent", "--shared=16"]
        return ["qemu-nbd", *options, "-k", device.socket, device.path]


class Lying(StandIn):
    """A server with a planted fault."""

    def __init__(self, world: World, fault: str) -> None:
        super().__init__(world)
        self.fault = fault

    def command(self, device: Device) -> list[object]:
        return [sys.executable, liar.__file__, self.fault, device.path, device.socket]


def uri(path: Path, export: str = "") -> str:
    """The NBD address of an export on a Unix socket."""
    return f"nbd+unix:///{quote(export)}?socket={path}"


def answers(path: Path) -> bool:
    """Whether someone listens there."""
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(str(path))
        except OSError:
            return False
        return True
