#!/usr/bin/python3
"""Measures NVMe/TCP beside NBD: one device in memory, one kind of client for both, in turn in one run."""

import argparse
import json
import os
import statistics
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from machine import now, processor

HERE = Path(__file__).resolve().parent
PROTOCOLS = ["nbd", "nvme"]
# What is asked: kind, bytes of a request, requests under way on each connection.
LOADS = [("read", 4096, 32), ("write", 4096, 32), ("read", 131072, 8), ("write", 131072, 8)]
CONNECTIONS = [1, 4]
DEVICE_BYTES = 1 << 30


@dataclass(frozen=True)
class Run:
    """One run against one server."""

    iops: float
    server_cpu_us: float


@dataclass(frozen=True)
class Row:
    """One load, over both protocols."""

    load: str
    nbd: list[Run]
    nvme: list[Run]

    def ratio(self, figure: str) -> float:
        """The median of NVMe over that of NBD."""
        medians = [statistics.median(getattr(run, figure) for run in runs) for runs in (self.nvme, self.nbd)]
        return medians[0] / medians[1]


class Server:
    """A process that serves the device over both protocols."""

    def __init__(self, example: Path, process: subprocess.Popen[str]) -> None:
        self.example, self.process = example, process
        assert process.stdout
        self.nbd, self.nvme, self.subsystem = process.stdout.readline().split()

    def cpu_seconds(self) -> float:
        """Processor time so far, of all its threads."""
        # Behind the name, which may hold anything: state is the first field, user and system time the 12th and 13th.
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def run(self, protocol: str, kind: str, block: int, depth: int, connections: int, seconds: float) -> Run:
        """One run of the client."""
        address = self.nbd if protocol == "nbd" else self.nvme
        words = [protocol, address, self.subsystem, kind, block, depth, connections, seconds, DEVICE_BYTES]
        before = self.cpu_seconds()
        said = subprocess.run([self.example, "drive", *map(str, words)], check=True, capture_output=True, text=True)
        used = self.cpu_seconds() - before
        count, took = said.stdout.split()
        return Run(int(count) / float(took), used * 1e6 / int(count))


@contextmanager
def serving(example: Path) -> Iterator[Server]:
    """The server, until it is no longer needed."""
    command = [example, "serve", str(DEVICE_BYTES)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Server(example, process)
    finally:
        process.communicate()


def measure(server: Server, seconds: float, rounds: int) -> Iterator[Row]:
    """Every load in turn over both protocols, as often as there are rounds."""
    for protocol in PROTOCOLS:
        # Everything is mapped before anything is read.
        server.run(protocol, "write", 1 << 20, 4, 1, seconds)
    for kind, block, depth in LOADS:
        for connections in CONNECTIONS:
            runs: dict[str, list[Run]] = {protocol: [] for protocol in PROTOCOLS}
            for _ in range(rounds):
                for protocol in PROTOCOLS:
                    runs[protocol].append(server.run(protocol, kind, block, depth, connections, seconds))
            name = f"{kind} {block // 1024} KiB, depth {depth}, {connections} connection{'s' if connections > 1 else ''}"
            yield Row(name, **runs)


def main() -> None:
    """Measures, prints a table, and keeps the raw figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--example", type=Path, required=True, help="the example `protocols` of the crate `export`, built with optimisation")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rows = []
    print("| load | NBD kIOPS | NVMe kIOPS | NVMe / NBD | server CPU an I/O, NVMe / NBD |\n|---|---:|---:|---:|---:|")
    with serving(options.example.resolve()) as server:
        for row in measure(server, options.seconds, options.rounds):
            rows.append(row)
            speeds = [statistics.median(run.iops for run in runs) / 1000 for runs in (row.nbd, row.nvme)]
            print(f"| {row.load} | {speeds[0]:.1f} | {speeds[1]:.1f} | {row.ratio('iops'):.2f} | {row.ratio('server_cpu_us'):.2f} |", flush=True)
    results = HERE / "results" / f"{now().replace(' ', '_').replace(':', '')}_nvme.json"
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps({"processor": processor(), "rows": [asdict(row) for row in rows]}, indent=1))


if __name__ == "__main__":
    main()
