#!/usr/bin/python3
"""Measures OpenVSL side by side with other block servers in one run, and writes docs/bench.md and bench/results/."""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from console import measure_console
from contenders import Contender, Server, greedy, ours, peers
from durable import measure_durable
from jobs import drop_caches, empty, fill, overwrite, random_jobs, sequential_jobs, skewed_jobs
from life import measure_life, picture
from machine import describe
from recovery import measure_recovery
from report import Measured, groomer_table, write_report
from scans import measure_scans
from series import Cell, measure

HERE = Path(__file__).resolve().parent
GIB = 1 << 30


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    seconds: float  # each run
    rounds: int
    connections: list[int]
    size: int  # bytes of every device
    full_size: int  # bytes of those that are filled and overwritten first
    scan_size: int  # bytes of those that are read in order, and of those that live a whole life
    recovery_size: int  # bytes of the one that is brought back after crashes
    idle_seconds: float  # over which the service at rest is looked at


PLANS = {
    "full": Plan(5, 3, [1, 4], 4 * GIB, 2 * GIB, 1 * GIB, 64 * GIB, 60),
    "quick": Plan(1, 3, [1, 4], 2 * GIB, 1 * GIB, GIB // 2, 4 * GIB, 20),
    "smoke": Plan(0.5, 1, [1], GIB // 4, GIB // 4, GIB // 8, GIB // 4, 2),
}


@contextmanager
def running(contenders: list[Contender], directory: Path, size: int) -> Iterator[dict[str, Server]]:
    """All contenders at once, each idle but when its turn comes."""
    servers: dict[str, Server] = {}
    try:
        for contender in contenders:
            servers[contender.name] = contender.start(directory, size)
        yield servers
    finally:
        for server in servers.values():
            server.stop()


def fresh(contenders: list[Contender], plan: Plan, directory: Path) -> list[Cell]:
    """Writes to devices with nothing on them, then reads of devices written in order."""
    with running(contenders, directory, plan.size) as servers:
        for name, server in servers.items():
            if name != "nbdkit null":
                # The peers' files are fully allocated, which suits them best.
                fill(server, plan.size)

        def emptied(name: str, server: Server) -> None:
            if name.startswith("vsl"):
                empty(server, plan.size)

        common = (servers, plan.size, plan.seconds, plan.rounds)
        writes = random_jobs("randwrite", [1, 32], plan.connections) + sequential_jobs("write", plan.connections)
        cells = measure("fresh", writes, *common, before=emptied)
        for name, server in servers.items():
            if name.startswith("vsl"):
                fill(server, plan.size)
        reads = random_jobs("randread", [1, 32], plan.connections) + sequential_jobs("read", plan.connections)
        return cells + measure("fresh", reads, *common)


def sustained(contenders: list[Contender], plan: Plan, directory: Path) -> list[Cell]:
    """The same on full devices that were overwritten twice at random: the groomer works all the time."""
    names = ["qemu-nbd raw", "nbdkit memory", "vsl file", "vsl memory"]
    chosen = [contender for contender in contenders if contender.name in names]
    with running(chosen, directory, plan.full_size) as servers:
        for server in servers.values():
            fill(server, plan.full_size)
            overwrite(server, plan.full_size, 2)
        jobs = random_jobs("randwrite", [1, 32], plan.connections) + random_jobs("randread", [32], plan.connections)
        return measure("sustained", jobs, servers, plan.full_size, plan.seconds, plan.rounds)


def groomers(vsl: Path, plan: Plan, directory: Path) -> list[Cell]:
    """Ours with the default groomer and with the simplest, on full devices that were overwritten twice with the same kind of writes."""
    [default] = [contender for contender in ours(vsl) if contender.name == "vsl file"]
    cells = []
    for job in skewed_jobs(32):
        with running([default, greedy(vsl)], directory, plan.full_size) as servers:
            for server in servers.values():
                fill(server, plan.full_size)
                overwrite(server, plan.full_size, 2, job.where)
            cells += measure("groomers", [job], servers, plan.full_size, plan.seconds, plan.rounds)
    return cells


def main() -> None:
    """Measures, and writes what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vsl", type=Path, required=True, help="the program, built with optimisation")
    parser.add_argument("--plan", choices=PLANS, default="full")
    parser.add_argument("--directory", type=Path, default=HERE / "results" / "devices", help="on the disk to measure")
    parser.add_argument("--only-groomers", action="store_true", help="the default groomer beside greedy, and nothing else; no report is written")
    parser.add_argument("--report", type=Path, default=HERE.parent / "docs" / "bench.md")
    options = parser.parse_args()
    plan, vsl = PLANS[options.plan], options.vsl.resolve()
    if not vsl.is_file():
        raise SystemExit(f"{vsl}: not there; `make release` builds it")

    shutil.rmtree(options.directory, ignore_errors=True)
    options.directory.mkdir(parents=True)
    contenders = peers() + ours(vsl)
    if options.only_groomers:
        try:
            print(groomer_table(groomers(vsl, plan, options.directory)))
        finally:
            shutil.rmtree(options.directory, ignore_errors=True)
        return
    caches_dropped = drop_caches()
    try:
        cells = fresh(contenders, plan, options.directory)
        cells += sustained(contenders, plan, options.directory)
        cells += groomers(vsl, plan, options.directory)
        on_files = [contender for contender in contenders if contender.media == "file"]
        [on_file] = [contender for contender in on_files if contender.name == "vsl file"]
        durable = measure_durable(on_files, options.directory, plan.size, plan.seconds, plan.rounds)
        scanners = [(contender, vsl if contender is on_file else None) for contender in on_files]
        for in_order in (False, True):
            cells += measure_scans(scanners, options.directory, plan.scan_size, plan.seconds, plan.rounds, in_order=in_order)
        lives = measure_life(vsl, contenders, options.directory, plan.scan_size)
        recovery = measure_recovery(on_file, options.directory, plan.recovery_size)
        cost = measure_console(vsl, plan.idle_seconds)
        machine = describe(options.directory, vsl)
    finally:
        shutil.rmtree(options.directory, ignore_errors=True)

    results = HERE / "results" / f"{machine['date'].replace(' ', '_').replace(':', '')}_{options.plan}.json"
    results.parent.mkdir(exist_ok=True)
    raw = {
        "machine": machine,
        "plan": options.plan,
        "caches_dropped": caches_dropped,
        "cells": [cell.as_json() for cell in cells],
        "durable": [asdict(row) for row in durable],
        "lives": [asdict(life) for life in lives],
        "recovery": asdict(recovery),
        "console": asdict(cost),
    }
    results.write_text(json.dumps(raw, indent=1))
    drawing = options.report.parent / "pictures" / "device-life.svg"
    drawing.parent.mkdir(parents=True, exist_ok=True)
    drawing.write_text(picture(lives))
    write_report(options.report, machine, plan, options.plan, caches_dropped, Measured(cells, durable, lives, recovery, cost))
    print(f"written: {options.report}, {drawing} and {results}")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
