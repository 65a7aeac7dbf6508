#!/usr/bin/python3
"""Measures a device as the disk of a virtual machine beside qemu-storage-daemon, in alternation, with libblkio as the client of both."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import now, processor

SIZE = 1 << 30
CELLS = [("4 KiB, 32 at a time", 4096, 32), ("128 KiB, 8 at a time", 131072, 8), ("4 KiB, one at a time", 4096, 1)]


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def servers(arguments: argparse.Namespace, directory: Path) -> dict[str, tuple[list[str], Path]]:
    """What is measured: command and socket. Both keep their data in memory."""
    image = directory / "image"
    with open(image, "wb") as file:
        # Allocated, so that nobody measures the file system's allocator.
        os.posix_fallocate(file.fileno(), 0, SIZE)
    theirs, ours = directory / "theirs", directory / "ours"
    return {
        "qemu-storage-daemon": ([
            "qemu-storage-daemon", "--blockdev", f"driver=file,node-name=disk,filename={image}",
            "--export", f"type=vhost-user-blk,id=export,node-name=disk,addr.type=unix,addr.path={theirs},writable=on,logical-block-size=4096",
        ], theirs),
        "OpenVSL": ([str(arguments.example), f"vhost:{ours}", str(SIZE >> 20)], ours),
    }


def load(arguments: argparse.Namespace, socket: Path, direction: str, block: int, depth: int, *more: str) -> dict:
    """One run of the client."""
    words = [arguments.blkload, socket, "load", direction, "--block", block, "--depth", depth, "--seconds", arguments.seconds, *more]
    return json.loads(subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout)


def main() -> int:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--example", type=Path, required=True, help="the example `serve_memory`, built with optimisation")
    parser.add_argument("--blkload", type=Path, required=True, help="the client, built with optimisation")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        running = {}
        try:
            for who, (command, socket) in servers(arguments, Path(name)).items():
                running[who] = (subprocess.Popen(command, stdin=subprocess.DEVNULL), socket)
                while not socket.exists():
                    time.sleep(0.05)
            # All of it is written once, so that reads find data.
            for _, socket in running.values():
                load(arguments, socket, "write", 131072, 8, "--sequential")
            print(f"{processor()}, {now()}; {arguments.rounds} rounds of {arguments.seconds} s in alternation, medians\n")
            print("| request | direction | qemu-storage-daemon | OpenVSL | ratio | server CPU a request, µs |")
            print("|---|---|---:|---:|---:|---|")
            for title, block, depth in CELLS:
                for direction in ["read", "write"]:
                    found: dict[str, list[tuple[float, float]]] = {who: [] for who in running}
                    for _ in range(arguments.rounds):
                        for who, (process, socket) in running.items():
                            before = cpu_seconds(process.pid)
                            iops = load(arguments, socket, direction, block, depth)["iops"]
                            cost = (cpu_seconds(process.pid) - before) / (iops * arguments.seconds) * 1e6
                            found[who].append((iops, cost))
                    middle = {who: sorted(runs)[len(runs) // 2] for who, runs in found.items()}
                    theirs, ours = middle["qemu-storage-daemon"], middle["OpenVSL"]
                    print(f"| {title} | {direction} | {theirs[0]:,.0f}/s | {ours[0]:,.0f}/s | {ours[0] / theirs[0]:.2f} | {theirs[1]:.1f} / {ours[1]:.1f} |", flush=True)
        finally:
            for process, _ in running.values():
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
