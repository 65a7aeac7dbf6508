"""A device of ours on a file system whose power can be cut."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from harness.check import check
from harness.cleanup import leftovers
from harness.faultfs import FaultFs
from harness.servers import Device
from harness.world import Done, World


@dataclass
class Kind:
    """A way to make a device."""

    files: int = 1
    parity: int = 0
    encrypted: bool = False

    def __str__(self) -> str:
        files = f"{self.files} files, parity {self.parity}" if self.files > 1 else "one file"
        return files + (", encrypted" if self.encrypted else "")


class Plant:
    """The device; not made yet."""

    def __init__(self, world: World, fs: FaultFs, name: str, size: int, kind: Kind = Kind(), options: tuple[object, ...] = ()) -> None:
        self.world = world
        self.fs = fs
        self.kind = kind
        self.options = options
        self.paths = [fs.path / f"{name}.{die}.vsl" for die in range(kind.files)]
        self.device = Device(name, self.paths[0], size, "")
        self.key: list[object] = []
        if kind.encrypted:
            key = world.dir / f"{name}.key"
            key.write_bytes(os.urandom(64))
            key.chmod(0o600)
            self.key = ["--key-file", key]

    @property
    def name(self) -> str:
        """Its name."""
        return self.device.name

    def create(self, fails: bool | None = False) -> Done:
        """Makes it."""
        options: list[object] = ["--size", self.device.size, "--yes", *self.options]
        options += ["--parity", self.kind.parity] if self.kind.files > 1 else []
        options += ["--encrypt", *self.key] if self.kind.encrypted else []
        return self.world.vsl("create", *self.paths, *options, fails=fails)

    def attach(self, fails: bool | None = False) -> Done:
        """Attaches it."""
        self.world.servers.up()
        done = self.world.vsl("attach", *self.paths, "--name", self.name, *self.key, fails=fails)
        if done.code == 0:
            self.device.uri = self.world.servers.uri(self.name)
        return done

    def detach(self, fails: bool | None = False) -> Done:
        """Detaches it, whoever uses it."""
        return self.world.vsl("detach", self.name, "--force", fails=fails)

    def start(self) -> "Plant":
        """Makes and attaches it."""
        self.create()
        self.attach()
        return self

    def status(self, field: str) -> str:
        """A field of its status."""
        return self.world.vsl("status", self.name, "--field", field).out.strip()

    def crash(self, seed: int | None = None) -> None:
        """Kills the daemon and cuts the power; see `FaultFs.cut`."""
        kill_all(self.world)
        self.fs.cut(seed)

    def recover(self) -> None:
        """Switches the power on and has the device attached again."""
        self.fs.switch_on()
        self.world.servers.revive(self.device)


def kill_all(world: World) -> None:
    """Kills our daemon, and our commands too, the hard way."""

    def ours() -> list[int]:
        return [pid for pid in leftovers(world.dir) if _program(pid) == world.vsl_path]

    deadline = time.monotonic() + 30
    while pids := ours():
        check(time.monotonic() < deadline, f"processes {pids} survive SIGKILL")
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.005)


def _program(pid: int) -> Path | None:
    try:
        return Path(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return None  # It ended meanwhile, or is a zombie.
