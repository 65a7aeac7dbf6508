#!/usr/bin/python3
"""Measures NVMe/TCP beside NBD: one device in memory, one kind of client for both, in turn in one run."""

import argparse
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from protocols import Run, Server, cpu_seconds, keep, serving

PROTOCOLS = ["nbd", "nvme"]
# What is asked: kind, bytes of a request, requests under way on each connection.
LOADS = [("read", 4096, 32), ("write", 4096, 32), ("read", 131072, 8), ("write", 131072, 8)]
CONNECTIONS = [1, 4]
DEVICE_BYTES = 1 << 30
# So often all of the device is written before anything is measured.
WRITTEN_FIRST = 3


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


def run(server: Server, protocol: str, kind: str, block: int, depth: int, connections: int, seconds: float) -> Run:
    """One run of the client."""
    address = server.nbd if protocol == "nbd" else server.nvme
    words = [protocol, address, server.subsystem, kind, block, depth, connections, seconds, DEVICE_BYTES]
    before = cpu_seconds(server.process.pid)
    said = subprocess.run([server.example, "drive", *map(str, words)], check=True, capture_output=True, text=True)
    used = cpu_seconds(server.process.pid) - before
    count, took = said.stdout.split()
    return Run(int(count) / float(took), used * 1e6 / int(count))


def measure(server: Server, seconds: float, rounds: int) -> Iterator[Row]:
    """Every load in turn over both protocols, as often as there are rounds."""
    # Reads find data, and all memory was touched: the first touch of a page costs more than a request.
    written = 0.0
    while written < WRITTEN_FIRST * DEVICE_BYTES:
        written += run(server, "nbd", "write", 1 << 20, 4, 1, 1).iops * (1 << 20)
    for kind, block, depth in LOADS:
        for connections in CONNECTIONS:
            runs: dict[str, list[Run]] = {protocol: [] for protocol in PROTOCOLS}
            for number in range(rounds):
                # In turn first and second: whoever comes second finds the caches as the other left them.
                for protocol in PROTOCOLS if number % 2 else reversed(PROTOCOLS):
                    runs[protocol].append(run(server, protocol, kind, block, depth, connections, seconds))
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
    with serving(options.example.resolve(), DEVICE_BYTES) as server:
        for row in measure(server, options.seconds, options.rounds):
            rows.append(row)
            speeds = [statistics.median(run.iops for run in runs) / 1000 for runs in (row.nbd, row.nvme)]
            print(f"| {row.load} | {speeds[0]:.1f} | {speeds[1]:.1f} | {row.ratio('iops'):.2f} | {row.ratio('server_cpu_us'):.2f} |", flush=True)
    keep("nvme", [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
