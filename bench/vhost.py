#!/usr/bin/python3
"""Measures a device as the disk of a virtual machine beside qemu-storage-daemon, in alternation, with libblkio as the client of both.

Both keep their data in memory, and serve one queue. The daemon copies from the page cache and computes no checksum.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from protocols import Run, cpu_seconds, keep, serving

SIZE = 1 << 30
# So often all of the device is written before anything is measured.
WRITTEN_FIRST = 3
PEER, OURS = "qemu-storage-daemon", "OpenVSL"
CELLS = [("4 KiB, 32 at a time", 4096, 32), ("128 KiB, 8 at a time", 131072, 8), ("4 KiB, one at a time", 4096, 1)]


@contextmanager
def peer(directory: Path) -> Iterator[tuple[int, Path]]:
    """The peer's process and socket."""
    image, socket = directory / "image", directory / "theirs"
    with open(image, "wb") as file:
        # Allocated, so that nobody measures the file system's allocator.
        os.posix_fallocate(file.fileno(), 0, SIZE)
    process = subprocess.Popen([
        PEER, "--blockdev", f"driver=file,node-name=disk,filename={image}",
        "--export", f"type=vhost-user-blk,id=export,node-name=disk,addr.type=unix,addr.path={socket},writable=on,logical-block-size=4096",
    ], stdin=subprocess.DEVNULL)
    try:
        while not socket.exists():
            time.sleep(0.05)
        yield process.pid, socket
    finally:
        process.terminate()
        process.wait(timeout=60)


def load(blkload: Path, server: tuple[int, Path], direction: str, block: int, depth: int, seconds: int, *more: str) -> Run:
    """One run of the client."""
    pid, socket = server
    words = [blkload, socket, "load", direction, "--block", block, "--depth", depth, "--seconds", seconds, *more]
    before = cpu_seconds(pid)
    iops = json.loads(subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout)["iops"]
    return Run(iops, (cpu_seconds(pid) - before) / (iops * seconds) * 1e6)


def main() -> None:
    """Measures, prints a table, and keeps the raw figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--example", type=Path, required=True, help="the example `protocols` of the crate `export`, built with optimisation")
    parser.add_argument("--blkload", type=Path, required=True, help="the client, built with optimisation")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name, peer(Path(name)) as theirs:
        socket = Path(name) / "ours"
        with serving(options.example.resolve(), SIZE, socket) as server:
            servers = {PEER: theirs, OURS: (server.process.pid, socket)}
            for each in servers.values():
                # Reads find data, and all memory was touched: the first touch of a page costs more than a request.
                written = 0.0
                while written < WRITTEN_FIRST * SIZE:
                    written += load(options.blkload, each, "write", 131072, 8, 1, "--sequential").iops * 131072
            print(f"| request | direction | {PEER} | {OURS} | ratio | server CPU a request, µs |\n|---|---|---:|---:|---:|---|")
            for title, block, depth in CELLS:
                for direction in ["read", "write"]:
                    runs: dict[str, list[Run]] = {who: [] for who in servers}
                    for _ in range(options.rounds):
                        for who, each in servers.items():
                            runs[who].append(load(options.blkload, each, direction, block, depth, options.seconds))
                    iops, cpu = ([statistics.median(getattr(run, of) for run in runs[who]) for who in servers] for of in ("iops", "server_cpu_us"))
                    print(f"| {title} | {direction} | {iops[0]:,.0f}/s | {iops[1]:,.0f}/s | {iops[1] / iops[0]:.2f} | {cpu[0]:.1f} / {cpu[1]:.1f} |", flush=True)
                    rows.append({"load": f"{direction} {title}", **{who: [asdict(run) for run in each] for who, each in runs.items()}})
    keep("vhost", rows)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
