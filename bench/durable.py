#!/usr/bin/python3
"""Measures the path of databases: clients that each write 8 KiB at random and flush it, over and over.

OpenVSL stands beside qemu-nbd and nbdkit on a file that is written already, and beside that file itself. Every contender runs in turn in
every round. For each number of clients it prints durable writes a second, how long a flush takes, and the bytes that reach the disk for
each of them: the disk's own count, journals of the file system included.

    python3 bench/durable.py --vsl target/release/vsl --directory /somewhere/on/the/disk
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from contenders import Contender, Server, ours, peers
from jobs import fill, fio, overwrite
from targets import Target, at_least, at_most

HERE = Path(__file__).resolve().parent
BLOCK = 8192
CLIENTS = [1, 4, 16, 64]
ITSELF = "the file itself"


@dataclass
class Run:
    """What one run gave."""

    writes: float  # durable ones a second
    p50_us: float  # of a flush
    p99_us: float
    longest_us: float
    disk_bytes: float  # for each write


def disk_written(directory: Path) -> int:
    """Bytes written so far to the disk that a directory is on."""
    device = os.stat(directory).st_dev
    return int(Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text().split()[6]) * 512


def settle(directory: Path, rest: float = 0.25, patience: float = 5) -> None:
    """Waits until nothing is written to the disk any more: what a contender does in quiet times is not to be the next one's load."""
    os.sync()
    end = time.monotonic() + patience
    before = -1
    while before != (now := disk_written(directory)) and time.monotonic() < end:
        before = now
        time.sleep(rest)


def measure(target: Server | Path, clients: int, size: int, seconds: float) -> Run:
    """Lets the clients write and flush for a while."""
    where = [f"--uri={target.uri}"] if isinstance(target, Server) else ["--ioengine=psync", f"--filename={target}", "--direct=1", "--overwrite=1"]
    flush = "--fsync=1" if isinstance(target, Server) else "--fdatasync=1"
    store = (target.socket if isinstance(target, Server) else target).parent
    settle(store)
    before = disk_written(store)
    result = fio(
        [*where, "--rw=randwrite", f"--bs={BLOCK}", "--iodepth=1", flush, "--thread", f"--numjobs={clients}", f"--size={size}", "--time_based", f"--runtime={round(seconds * 1000)}ms"]
    )["jobs"][0]
    wrote = disk_written(store) - before
    sync = result["sync"]["lat_ns"]
    percentiles = sync["percentile"]
    return Run(
        writes=result["write"]["iops"],
        p50_us=percentiles["50.000000"] / 1000,
        p99_us=percentiles["99.000000"] / 1000,
        longest_us=sync["max"] / 1000,
        disk_bytes=wrote / max(result["write"]["total_ios"], 1),
    )


@dataclass
class Durable:
    """So many clients against one contender: the medians of all runs."""

    clients: int
    contender: str
    middle: Run


def measure_durable(
    contenders: list[Contender], directory: Path, size: int, seconds: float, rounds: int, clients: list[int] = CLIENTS, aged: bool = False, itself: bool = True
) -> list[Durable]:
    """Runs every number of clients against every contender on a file, in turn; with `aged` OpenVSL's groomer works all the time."""
    targets: dict[str, Server | Path] = {}
    rows = []
    try:
        for contender in contenders:
            server = targets[contender.name] = contender.start(directory, size)
            fill(server, size)
            if aged and contender.name.startswith("vsl"):
                overwrite(server, size, 2)
        if itself:
            raw = targets[ITSELF] = directory / "raw.img"
            subprocess.run(["dd", "if=/dev/zero", f"of={raw}", "bs=1M", f"count={size >> 20}", "oflag=direct"], check=True, capture_output=True)
        for count in clients:
            runs: dict[str, list[Run]] = {name: [] for name in targets}
            for _ in range(rounds):
                for name, target in targets.items():
                    runs[name].append(measure(target, count, size, seconds))
            rows += [Durable(count, name, Run(**{key: statistics.median(getattr(run, key) for run in of) for key in vars(of[0])})) for name, of in runs.items()]
            print(f"durable: {count} clients: {'  '.join(f'{row.contender} {row.middle.writes:,.0f}/s' for row in rows if row.clients == count)}", flush=True)
    finally:
        for target in targets.values():
            if isinstance(target, Server):
                target.stop()
        for store in directory.glob("*.img"):
            store.unlink()
    return rows


def durable_table(rows: list[Durable]) -> str:
    """One row for each number of clients and contender."""
    lines = ["| clients | contender | durable writes /s | flush p50 µs | p99 µs | longest µs | KB to disk a write |", "|---:|---|---:|---:|---:|---:|---:|"]
    for row in rows:
        run = row.middle
        lines.append(f"| {row.clients} | {row.contender} | {run.writes:,.0f} | {run.p50_us:,.0f} | {run.p99_us:,.0f} | {run.longest_us:,.0f} | {run.disk_bytes / 1000:.1f} |")
    return "\n".join(lines)


def durable_targets(rows: list[Durable]) -> list[Target]:
    """Level with the best peer at each number of clients, in speed and in how long a flush takes; and few bytes."""
    us = {row.clients: row.middle for row in rows if row.contender == "vsl file"}
    peers = {count: [row.middle for row in rows if row.clients == count and row.contender not in ("vsl file", ITSELF)] for count in us}
    return [
        at_least("durable writes, vsl file against the best peer", 1, {f"{count} clients": run.writes / max(peer.writes for peer in peers[count]) for count, run in us.items()}),
        at_most("p99 of a flush, vsl file against the fastest peer", 1, {f"{count} clients": run.p99_us / max(peers[count], key=lambda peer: peer.writes).p99_us for count, run in us.items()}),
        at_most("KB to the disk for a durable write of 8 KiB", 12, {f"{count} clients": run.disk_bytes / 1000 for count, run in us.items()}),
    ]


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, required=True, help="the program, built with optimisation")
    parser.add_argument("--clients", type=lambda text: [int(word) for word in text.split(",")], default=CLIENTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--gib", type=float, default=2, help="size of each device, GiB")
    parser.add_argument("--aged", action="store_true", help="overwrite the devices twice first: OpenVSL's groomer then works all the time")
    parser.add_argument("--only", nargs="*", help="contenders to measure")
    parser.add_argument("--directory", type=Path, default=HERE / "results" / "durable", help="on the disk to measure")
    options = parser.parse_args()
    size = int(options.gib * (1 << 30)) // (1 << 20) * (1 << 20)
    contenders = [one for one in peers() + ours(options.vsl.resolve()) if one.media == "file" and (not options.only or one.name in options.only)]
    shutil.rmtree(options.directory, ignore_errors=True)
    options.directory.mkdir(parents=True)
    try:
        itself = not options.only or ITSELF in options.only
        print(durable_table(measure_durable(contenders, options.directory, size, options.seconds, options.rounds, options.clients, options.aged, itself)))
    finally:
        shutil.rmtree(options.directory, ignore_errors=True)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
