#!/usr/bin/python3
"""Measures a device's life: filled, overwritten five times, read, trimmed and filled again, with 4 KiB at depth 32 all the time.

For each phase it prints the median of the requests in each 100 ms, the least of them, how many 100 ms had less than a quarter of the median,
and the longest waits. What the device's log says of requests that waited longer than 50 ms follows.

    python3 bench/life.py --vsl target/release/vsl --directory /somewhere/on/the/disk
"""

import argparse
import os
import re
import shutil
import statistics
import sys
from collections import Counter
from pathlib import Path

from contenders import Contender, Server, ours, peers
from jobs import empty, fio

HERE = Path(__file__).resolve().parent


def phase(name: str, server: Server, directory: Path, options: list[str]) -> str:
    """Runs fio, which writes down each 100 ms, and gives a row of the table."""
    log = directory / "iops"
    for old in directory.glob("iops_*"):
        old.unlink()
    result = fio([f"--uri={server.uri}", "--bs=4096", "--iodepth=32", f"--write_iops_log={log}", "--log_avg_msec=100", *options])
    side = result["jobs"][0]["read" if "read" in options[0] else "write"]
    [written] = directory.glob("iops_iops*.log")
    rates = [int(line.split(",")[1]) for line in written.read_text().splitlines()[:-1]] or [int(side["iops"])]
    middle = statistics.median(rates)
    low = sum(rate < middle / 4 for rate in rates)
    percentiles = side["clat_ns"].get("percentile", {})
    p9999 = percentiles.get("99.990000", 0) / 1e6
    return f"| {name} | {middle:,.0f} | {min(rates):,.0f} | {low} of {len(rates)} | {p9999:.1f} | {side['clat_ns']['max'] / 1e6:.1f} |"


def live(contender: Contender, directory: Path, size: int) -> None:
    """One life."""
    server = contender.start(directory, size)
    order, random = ["--rw=write", f"--size={size}"], ["--rw=randwrite", f"--size={size}", f"--io_size={size}"]
    try:
        print(f"\n### {contender.name}\n\n| phase | median IOPS of 100 ms | least | under a quarter | p99.99 ms | longest ms |\n|---|---:|---:|---:|---:|---:|")
        print(phase("filled, in order", server, directory, order), flush=True)
        for time in range(1, 6):
            print(phase(f"overwritten, {time}", server, directory, random), flush=True)
        print(phase("read at random", server, directory, ["--rw=randread", f"--size={size}", "--time_based", "--runtime=5"]), flush=True)
        empty(server, size)
        print(phase("filled after a trim of everything", server, directory, order), flush=True)
    finally:
        server.stop()
    log = (directory / f"{contender.name.replace(' ', '-')}.log").read_text()
    told = Counter(re.findall(r"requests waited long: ([^\n]*)", re.sub(r"\x1b\[[0-9;]*m", "", log)))
    for why, times in told.most_common():
        print(f"\nThe log told {times} times: {why}")


def main() -> None:
    """Measures and prints a table for each contender."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, required=True, help="the program, built with optimisation")
    parser.add_argument("--gib", type=float, default=1, help="size of each device, GiB")
    parser.add_argument("--only", nargs="*", default=["vsl file", "qemu-nbd raw"], help="contenders to measure")
    parser.add_argument("--directory", type=Path, default=HERE / "results" / "life", help="on the disk to measure")
    options = parser.parse_args()
    size = int(options.gib * (1 << 30)) // (1 << 20) * (1 << 20)
    shutil.rmtree(options.directory, ignore_errors=True)
    options.directory.mkdir(parents=True)
    try:
        for contender in peers() + ours(options.vsl.resolve()):
            if contender.name in options.only:
                os.sync()
                live(contender, options.directory, size)
    finally:
        shutil.rmtree(options.directory, ignore_errors=True)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
