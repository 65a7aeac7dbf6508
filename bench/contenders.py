"""Who is measured: each contender is a server on a Unix socket, started the way its own manual recommends."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

START_SECONDS = 30


@dataclass
class Server:
    """A running contender."""

    process: subprocess.Popen
    socket: Path

    @property
    def uri(self) -> str:
        """Where fio finds it."""
        return f"nbd+unix:///?socket={self.socket}"

    def cpu_seconds(self) -> float:
        """Processor time of the server so far, user and system, over all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """Ends it the polite way, and insists after a while."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Contender:
    """One row of the table: how to make its store, and the command that serves it."""

    name: str
    media: str  # "memory" or "file": which rows may be compared
    command: Callable[[Path, Path, int], list[str]]  # (store, socket, bytes)
    make_store: Callable[[Path, int], None] = field(default=lambda store, size: None)

    def start(self, directory: Path, size: int, make: bool = True) -> Server:
        """Makes the store, unless it is there from before, and starts the server."""
        stem = self.name.replace(" ", "-")
        store, sock = directory / f"{stem}.img", directory / f"{stem}.sock"
        sock.unlink(missing_ok=True)  # A server that was ended before may have left it.
        if make:
            self.make_store(store, size)
        with open(directory / f"{stem}.log", "wb") as log:
            process = subprocess.Popen(self.command(store, sock, size), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while not _answers(sock):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise SystemExit(f"{self.name} did not start: {(directory / f'{stem}.log').read_text()}")
            time.sleep(0.005)
        return Server(process, sock)


def _answers(sock: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(str(sock))
        except OSError:
            return False
        return True


def _sparse(store: Path, size: int) -> None:
    with open(store, "wb") as f:
        f.truncate(size)


def peers() -> list[Contender]:
    """The servers that others wrote."""
    return [
        Contender("nbdkit null", "memory", lambda store, sock, size: _nbdkit(sock) + ["null", f"size={size}"]),
        Contender("nbdkit memory", "memory", lambda store, sock, size: _nbdkit(sock) + ["memory", f"size={size}"]),
        Contender("nbdkit file", "file", lambda store, sock, size: _nbdkit(sock) + ["file", f"{store}"], _sparse),
        Contender(
            "qemu-nbd raw",
            "file",
            lambda store, sock, size: [
                "qemu-nbd", "-f", "raw", "--cache=none", "--aio=io_uring", "--discard=unmap",
                "--persistent", "--shared=64", "-k", f"{sock}", f"{store}",
            ],
            _sparse,
        ),
    ]


def _nbdkit(sock: Path) -> list[str]:
    return ["nbdkit", "--foreground", "--unix", f"{sock}"]


def ours(vsl: Path) -> list[Contender]:
    """OpenVSL on a file and in memory, as `vsl create` makes it by default: 28 % over-provisioning, 4 KiB sectors."""

    def create(store: Path, size: int) -> None:
        store.unlink(missing_ok=True)
        made = subprocess.run([vsl, "create", store, "--size", str(size)], capture_output=True, text=True)
        if made.returncode != 0:
            raise SystemExit(f"vsl create failed: {made.stderr}")

    return [
        Contender("vsl memory", "memory", lambda store, sock, size: [f"{vsl}", "serve", f"memory:{size}", "--socket", f"{sock}"]),
        Contender("vsl file", "file", lambda store, sock, size: [f"{vsl}", "serve", f"{store}", "--socket", f"{sock}"], create),
    ]


def greedy(vsl: Path) -> Contender:
    """The same on a file, with the simplest groomer instead of the default one: what is decided cleverly must be worth its processor time."""
    [default] = [contender for contender in ours(vsl) if contender.name == "vsl file"]

    def create(store: Path, size: int) -> None:
        default.make_store(store, size)
        with tempfile.TemporaryDirectory(prefix="vsl-bench.") as directory:
            environment = os.environ | {"OPENVSL_RUNTIME_DIR": f"{directory}/run", "OPENVSL_STATE_DIR": f"{directory}/state"}

            def run(*words: str) -> None:
                done = subprocess.run([vsl, *words], env=environment, capture_output=True, text=True, timeout=60)
                if done.returncode != 0:
                    raise SystemExit(f"vsl {' '.join(words)} failed: {done.stderr}")

            run("up")
            try:
                run("attach", f"{store}", "--once")
                run("config", store.stem, "groomer", "greedy")
            finally:
                run("down")

    return Contender("vsl file greedy", "file", default.command, create)
