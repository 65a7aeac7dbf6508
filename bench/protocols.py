"""The example `protocols` of the crate `export`: a device in memory, served over every protocol, and its clients."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from machine import now, processor

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Run:
    """One run of a client against one server."""

    iops: float
    server_cpu_us: float


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far, of all its threads."""
    # Behind the name, which may hold anything: state is the first field, user and system time the 12th and 13th.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    """A process that serves the device."""

    def __init__(self, example: Path, process: subprocess.Popen[str]) -> None:
        self.example, self.process = example, process
        assert process.stdout
        self.nbd, self.nvme, self.subsystem = process.stdout.readline().split()


@contextmanager
def serving(example: Path, size: int, *more: Path) -> Iterator[Server]:
    """The server, until it is no longer needed."""
    command = [example, "serve", str(size), *more]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Server(example, process)
    finally:
        process.communicate()


def keep(name: str, rows: list[dict]) -> None:
    """Keeps the raw figures."""
    results = HERE / "results" / f"{now().replace(' ', '_').replace(':', '')}_{name}.json"
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps({"processor": processor(), "rows": rows}, indent=1))
