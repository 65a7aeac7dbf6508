"""The world of one test: a directory, a daemon and devices of its own."""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from harness.check import Failed, check
from harness.servers import Device, Servers, servers

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


@dataclass
class Done:
    """A command that has ended."""

    command: list[str]
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """All it said."""
        return self.out + self.err


class World:
    """What a test is given."""

    def __init__(self, directory: Path, vsl: Path, server: str, tools: Path) -> None:
        self.dir = directory
        self.vsl_path = vsl
        self.tools = tools
        self.is_ours = server == "vsl"
        self.servers: Servers = servers(server, self)

    def device(self, size: int, name: str = "disk", sector: int = 4096, path: Path | None = None) -> Device:
        """Makes a device and serves it over NBD."""
        return self.servers.serve(name, size, sector, path or self.dir / f"{name}.vsl")

    def vsl(self, *arguments: object, fails: bool | None = False, timeout: float = 60) -> Done:
        """Runs our command; `fails` turns the expected exit status round, or allows both when it is `None`."""
        return self.run(self.vsl_path, *arguments, fails=fails, timeout=timeout)

    def run(self, *command: object, fails: bool | None = False, timeout: float = 120, stdin: bytes | None = None) -> Done:
        """Runs a command, shows it and what it says in the log, and fails unless it succeeds (or fails, or either, if so asked)."""
        words = [str(word) for word in command]
        print("$", " ".join(words), flush=True)
        # Output goes to files, not pipes: a daemon that the command leaves behind would hold a pipe open.
        with open(self.dir / "out", "w+b") as out, open(self.dir / "err", "w+b") as err:
            try:
                given = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
                code = subprocess.run(words, stdout=out, stderr=err, timeout=timeout, cwd=self.dir, **given).returncode
            except subprocess.TimeoutExpired:
                raise Failed(f"{' '.join(words)}: still running after {timeout} s") from None
            out.seek(0), err.seek(0)
            done = Done(words, code, out.read().decode(errors="replace"), err.read().decode(errors="replace"))
        print(done.text, f"[exit {done.code}]", flush=True)
        if fails or (fails is None and done.code != 0):
            check(done.code != 0, f"{' '.join(words)}: succeeded, but had to be refused\n{done.text}")
            check(done.code > 0, f"{' '.join(words)}: ended by signal {-done.code} instead of an error")
            check("panicked" not in done.text, f"{' '.join(words)}: panicked\n{done.text}")
        else:
            check(done.code == 0, f"{' '.join(words)}: exit {done.code}\n{done.text}")
        return done

    def start(self, *command: object, log: str) -> subprocess.Popen:
        """Starts a command that goes on beside the test; the runner ends what is left of it."""
        words = [str(word) for word in command]
        print("$", " ".join(words), "&", flush=True)
        with open(self.dir / log, "ab") as out:
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.dir)

    def tool(self, name: str) -> Path:
        """A program that `make test` or `make soak` installed into the build directory."""
        path = self.tools / name
        check(os.access(path, os.X_OK), f"{path} is missing: scripts/install-*.sh installs it, or give --tools")
        return path

    def wait(self, until: Callable[[], object], what: str, seconds: float = 30) -> None:
        """Waits for something to become true."""
        deadline = time.monotonic() + seconds
        while not until():
            check(time.monotonic() < deadline, f"waited {seconds} s in vain for {what}")
            time.sleep(0.02)
