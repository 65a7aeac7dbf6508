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
from dataclasses import dataclass
from pathlib import Path

from contenders import Server, ours, peers
from jobs import fill, fio, overwrite

HERE = Path(__file__).resolve().parent
BLOCK = 8192


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


def measure(target: Server | Path, clients: int, size: int, seconds: float) -> Run:
    """Lets the clients write and flush for a while."""
    where = [f"--uri={target.uri}"] if isinstance(target, Server) else ["--ioengine=psync", f"--filename={target}", "--direct=1", "--overwrite=1"]
    flush = "--fsync=1" if isinstance(target, Server) else "--fdatasync=1"
    store = (target.socket if isinstance(target, Server) else target).parent
    os.sync()
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


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, required=True, help="the program, built with optimisation")
    parser.add_argument("--clients", type=lambda text: [int(word) for word in text.split(",")], default=[1, 4, 16, 64])
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
    targets: dict[str, Server | Path] = {}
    try:
        for contender in contenders:
            server = targets[contender.name] = contender.start(options.directory, size)
            fill(server, size)
            if options.aged and contender.name.startswith("vsl"):
                overwrite(server, size, 2)
        if not options.only or "the file itself" in options.only:
            raw = options.directory / "raw.img"
            subprocess.run(["dd", "if=/dev/zero", f"of={raw}", "bs=1M", f"count={size >> 20}", "oflag=direct"], check=True, capture_output=True)
            targets["the file itself"] = raw
        print("| clients | contender | durable writes /s | flush p50 µs | p99 µs | longest µs | KB to disk a write |\n|---:|---|---:|---:|---:|---:|---:|")
        for clients in options.clients:
            runs: dict[str, list[Run]] = {name: [] for name in targets}
            for _ in range(options.rounds):
                for name, target in targets.items():
                    runs[name].append(measure(target, clients, size, options.seconds))
            for name, of in runs.items():
                middle = {key: statistics.median(getattr(run, key) for run in of) for key in vars(of[0])}
                print(
                    f"| {clients} | {name} | {middle['writes']:,.0f} | {middle['p50_us']:,.0f} | {middle['p99_us']:,.0f} "
                    f"| {middle['longest_us']:,.0f} | {middle['disk_bytes'] / 1000:.1f} |",
                    flush=True,
                )
    finally:
        for target in targets.values():
            if isinstance(target, Server):
                target.stop()
        shutil.rmtree(options.directory, ignore_errors=True)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
