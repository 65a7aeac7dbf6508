#!/usr/bin/python3
"""Measures a device's life, with 4 KiB at depth 32 all the time: filled, overwritten five times, left alone, scrubbed, read, trimmed; and, on three files with parity, rebuilt.

A server that writes in place, and the file itself, live the same life as far as they have it. Each phase is a row: the median of the requests
in each 100 ms, the least of them, how many 100 ms had less than a quarter of the median, and the longest waits. What the device's log says
of requests that waited longer than 50 ms follows. `--picture` draws all of it.

    python3 bench/life.py --vsl target/release/vsl --directory /somewhere/on/the/disk
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from contenders import Contender, Server, peers
from jobs import empty, fio
from service import Service
from targets import Target, at_most

HERE = Path(__file__).resolve().parent
OVERWRITES = 5
READ_SECONDS = 5
QUIET_SECONDS = 10
# What no request may wait longer than, unless the file itself has waited a tenth of that, ms.
LONGEST_MS = 50
ITSELF = "the file itself"


@dataclass
class Phase:
    """What clients saw in one part of a life."""

    name: str
    rates: list[int]  # requests a second, of each 100 ms
    p9999_ms: float
    longest_ms: float

    @property
    def low(self) -> int:
        """How many 100 ms had less than a quarter of the median."""
        return sum(rate < statistics.median(self.rates) / 4 for rate in self.rates)


@dataclass
class Life:
    """All phases of one contender."""

    contender: str
    phases: list[Phase] = field(default_factory=list)
    told: dict[str, int] = field(default_factory=dict)  # what its log says of requests that waited long, and how often


class Client:
    """fio at depth 32 against one device, which writes down what it got."""

    def __init__(self, life: Life, where: list[str], size: int, directory: Path) -> None:
        self.life, self.where, self.size, self.directory = life, where, size, directory

    def run(self, name: str, *options: str) -> None:
        """One phase."""
        log = self.directory / "iops"
        for old in self.directory.glob("iops_*"):
            old.unlink()
        result = fio([*self.where, "--bs=4096", "--iodepth=32", f"--size={self.size}", f"--write_iops_log={log}", "--log_avg_msec=100", *options])
        side = result["jobs"][0]["read" if options[0] == "--rw=randread" else "write"]
        [written] = self.directory.glob("iops_iops*.log")
        # The last of them is not whole.
        rates = [int(line.split(",")[1]) for line in written.read_text().splitlines()[:-1]] or [int(side["iops"])]
        self.life.phases.append(Phase(name, rates, side["clat_ns"].get("percentile", {}).get("99.990000", 0) / 1e6, side["clat_ns"]["max"] / 1e6))
        print(f"life: {self.life.contender}: {name}: {statistics.median(rates):,.0f}/s, longest {self.life.phases[-1].longest_ms:.1f} ms", flush=True)

    def fill(self, name: str) -> None:
        """Everything once, in order."""
        self.run(name, "--rw=write")

    def overwrite(self, name: str, share: float = 1) -> None:
        """As much as the device holds, or a share of it, at random."""
        self.run(name, "--rw=randwrite", f"--io_size={int(self.size * share)}")

    def read(self, name: str) -> None:
        """At random."""
        self.run(name, "--rw=randread", "--time_based", f"--runtime={READ_SECONDS}")

    def beside(self, name: str, work: Callable[[], object]) -> None:
        """Writes at random, again and again, until a work that is done meanwhile has ended: one phase."""
        before = len(self.life.phases)
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(work)
            self.overwrite(name, 0.5)
            while not done.done():
                self.overwrite(name, 0.5)
            done.result()
        parts = self.life.phases[before:]
        self.life.phases[before:] = [
            Phase(name, [rate for part in parts for rate in part.rates], max(part.p9999_ms for part in parts), max(part.longest_ms for part in parts))
        ]


def common(client: Client) -> None:
    """What every contender lives through."""
    client.fill("filled, in order")
    for times in range(1, OVERWRITES + 1):
        client.overwrite(f"overwritten, {times}")
    time.sleep(QUIET_SECONDS)
    client.overwrite(f"overwritten after {QUIET_SECONDS} s of quiet", 0.5)
    client.read("read at random")


def itself(directory: Path, size: int) -> Life:
    """The file, written in place without a server."""
    life, raw = Life(ITSELF), directory / "raw.img"
    subprocess.run(["fallocate", "--length", str(size), raw], check=True)
    common(Client(life, ["--ioengine=io_uring", f"--filename={raw}", "--direct=1", "--overwrite=1"], size, directory))
    raw.unlink()
    return life


def peer(contender: Contender, directory: Path, size: int) -> Life:
    """A server that writes in place."""
    life, server = Life(contender.name), contender.start(directory, size)
    try:
        client = Client(life, [f"--uri={server.uri}"], size, directory)
        common(client)
        empty(server, size)
        client.fill("filled after a trim of everything")
    finally:
        server.stop()
    return life


def ours(service: Service, directory: Path, size: int) -> list[Life]:
    """A device on a file; and one on three files, of which one is lost."""
    one, three = Life("vsl file"), Life("vsl on three files")
    service.vsl("create", directory / "one.vsl", "--size", size)
    service.vsl("attach", directory / "one.vsl", "--once")
    server = service.export("one")
    client = Client(one, [f"--uri={server.uri}"], size, directory)
    common(client)
    client.beside("overwritten while scrubbed", lambda: service.vsl("scrub", "one", "--wait"))
    client.beside("overwritten while half of it is trimmed", lambda: trim_half(server, size))
    empty(server, size)
    client.fill("filled after a trim of everything")
    service.vsl("detach", "one")
    (directory / "one.vsl").unlink()

    files = [directory / f"three{number}.vsl" for number in range(3)]
    service.vsl("create", *files, "--size", size)
    service.vsl("attach", *files, "--name", "three", "--once")
    client = Client(three, [f"--uri={service.export('three').uri}"], size, directory)
    client.fill("filled, in order")
    client.overwrite("overwritten")
    service.vsl("detach", "three")
    files[1].unlink()
    service.vsl("attach", files[0], files[2], "--degraded", "--name", "three", "--once")
    client.overwrite("overwritten with a file lost", 0.5)
    client.beside("overwritten while rebuilt", lambda: service.vsl("rebuild", "three", "1", "--onto", files[1], "--wait"))
    service.vsl("detach", "three")
    for file in files:
        file.unlink()
    one.told = told(directory / "service.log")
    return [one, three]


def trim_half(server: Server, size: int) -> None:
    """Gives the second half of a device back."""
    fio([f"--uri={server.uri}", "--rw=trim", "--bs=16M", "--iodepth=1", f"--offset={size // 2}", f"--size={size // 2}"])


def told(log: Path) -> dict[str, int]:
    """What a service's log says of requests that waited long, and how often."""
    return dict(Counter(re.findall(r"requests waited long: ([^\n]*)", re.sub(r"\x1b\[[0-9;]*m", "", log.read_text()))))


def measure_life(vsl: Path, contenders: list[Contender], directory: Path, size: int) -> list[Life]:
    """All lives, one after the other."""
    lives = [itself(directory, size)] + [peer(contender, directory, size) for contender in contenders if contender.name == "qemu-nbd raw"]
    for store in directory.glob("*.img"):
        store.unlink()
    os.sync()
    service = Service(vsl, directory, [])
    try:
        return lives + ours(service, directory, size)
    finally:
        service.stop()


def life_table(lives: list[Life]) -> str:
    """One row for each phase of each life."""
    lines = ["| | phase | median IOPS of 100 ms | least | under a quarter | p99.99 ms | longest ms |", "|---|---|---:|---:|---:|---:|---:|"]
    for life in lives:
        for phase in life.phases:
            lines.append(
                f"| {life.contender} | {phase.name} | {statistics.median(phase.rates):,.0f} | {min(phase.rates):,.0f} | {phase.low} of {len(phase.rates)} "
                f"| {phase.p9999_ms:.1f} | {phase.longest_ms:.1f} |"
            )
    causes = [f"\nThe log of OpenVSL told {times} times: {why}" for life in lives for why, times in Counter(life.told).most_common()]
    return "\n".join(lines + causes)


def life_targets(lives: list[Life]) -> list[Target]:
    """No request waits long, and no 100 ms stand still."""
    file = max((phase.longest_ms for life in lives if life.contender == ITSELF for phase in life.phases), default=0)
    phases = {f"{life.contender}: {phase.name}": phase for life in lives if life.contender.startswith("vsl") for phase in life.phases}
    return [
        at_most(f"longest wait in any phase, ms; the file's own longest was {file:.1f}", max(LONGEST_MS, 10 * file), {name: phase.longest_ms for name, phase in phases.items()}),
        at_most("100 ms with less than a quarter of a phase's median", 0, {name: phase.low for name, phase in phases.items()}),
    ]


def picture(lives: list[Life]) -> str:
    """An SVG with a panel for each life: what clients got in each 100 ms, phases side by side."""
    width, height, gap, left = 900, 110, 44, 70
    top = max(rate for life in lives for phase in life.phases for rate in phase.rates)
    parts = []
    for row, life in enumerate(lives):
        base = row * (height + gap) + gap + height
        steps = sum(len(phase.rates) for phase in life.phases)
        parts.append(f'<text x="{left}" y="{base - height - 8}" font-weight="bold">{life.contender}</text>')
        for share in (0, 0.5, 1):
            y = base - height * share
            parts.append(f'<line x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ccc"/>')
            parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{top * share / 1000:,.0f} k/s</text>')
        at = 0
        for number, phase in enumerate(life.phases):
            points = [f"{left + (at + step) * width / steps:.1f},{base - height * rate / top:.1f}" for step, rate in enumerate(phase.rates)]
            colour = ("#2563a8", "#c2571a")[number % 2]
            parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="1.2"><title>{phase.name}</title></polyline>')
            parts.append(f'<text x="{left + at * width / steps:.1f}" y="{base + 13}" fill="{colour}">{number + 1}</text>')
            at += len(phase.rates)
    total = len(lives) * (height + gap) + gap
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {total}" font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, required=True, help="the program, built with optimisation")
    parser.add_argument("--gib", type=float, default=1, help="size of each device, GiB")
    parser.add_argument("--picture", type=Path, help="the SVG to write")
    parser.add_argument("--directory", type=Path, default=HERE / "results" / "life", help="on the disk to measure")
    options = parser.parse_args()
    size = int(options.gib * (1 << 30)) // (1 << 20) * (1 << 20)
    shutil.rmtree(options.directory, ignore_errors=True)
    options.directory.mkdir(parents=True)
    try:
        lives = measure_life(options.vsl.resolve(), peers(), options.directory.resolve(), size)
    finally:
        shutil.rmtree(options.directory, ignore_errors=True)
    print(life_table(lives))
    if options.picture:
        options.picture.write_text(picture(lives))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
