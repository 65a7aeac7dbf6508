#!/usr/bin/python3
"""Measures arrays beside one of their members: members in memory, in files, and emulated cards, all in one service, in turn in one run.

Every array has two members. For each load it prints the median of one member, and what RAID 0 and a mirror reach of it: the median of the
ratios of rounds, since the machine's neighbours slow a round as a whole. `quorum` of qemu-storage-daemon stands beside the mirror as a
peer: two files behind one export, beside one file.

    python3 bench/arrays.py --vsl target/release/vsl --directory /somewhere/on/the/disk

`--only growth` measures what it costs that an array gets one more member, and how long a copy that comes back takes.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from contenders import Server
from growth import measure_growth
from jobs import FioFailed, Job, fill, random_jobs, run_job, sequential_jobs
from machine import describe
from protocols import keep
from series import Cell
from service import PATIENCE, Service

HERE = Path(__file__).resolve().parent
MIB = 1 << 20


def members(service: Service, kind: str, directory: Path, size: int, options: argparse.Namespace) -> dict[str, Server]:
    """One member by itself, a RAID 0 and a mirror, all of members of one kind."""
    names = {name: f"{kind}-{name}" for name in ("one", "a", "b", "c", "d")}
    for name in names.values():
        if kind == "memory":
            service.vsl("attach", f"memory:{size}", "--name", name, "--once")
            continue
        path = (Path("/dev/shm") if kind == "emulated" else directory) / f"vsl-arrays-{os.getpid()}-{name}.vsl"
        if kind == "emulated":
            service.vsl("create", path, "--emulate", options.profile, "--scale", options.scale)
            # The first module of a card that has several.
            path = min(path.parent.glob(f"{path.stem}*.vsl"))
            # Memory that is touched for the first time would be slower than the card, on many a virtual machine.
            subprocess.run(["fallocate", "--length", str(min(path.stat().st_size, 2 << 30)), path], check=True)
        else:
            service.vsl("create", path, "--size", size)
        service.vsl("attach", path, "--name", name, "--once")
    service.vsl("array", "create", f"{kind}-raid0", "--level", "raid0", names["a"], names["b"])
    service.vsl("array", "create", f"{kind}-raid1", "--level", "raid1", names["c"], names["d"])
    return {"one member": service.export(names["one"]), "RAID 0": service.export(f"{kind}-raid0"), "mirror": service.export(f"{kind}-raid1")}


@contextmanager
def quorum(directory: Path, size: int) -> Iterator[dict[str, Server]]:
    """qemu-storage-daemon on one file, and on two of which it writes both and reads the first that answers."""
    socket = directory / "quorum.sock"
    nodes = []
    for name in ("one", "a", "b"):
        path = directory / f"quorum-{name}.img"
        path.write_bytes(b"")
        os.truncate(path, size)
        cache = {"direct": True, "no-flush": False}
        node = {"driver": "file", "node-name": name, "filename": str(path), "aio": "io_uring", "cache": cache, "discard": "unmap"}
        nodes += ["--blockdev", json.dumps(node)]
    mirror = {"driver": "quorum", "node-name": "mirror", "children": ["a", "b"], "vote-threshold": 1, "read-pattern": "fifo"}
    command = ["qemu-storage-daemon", *nodes, "--blockdev", json.dumps(mirror), "--nbd-server", f"addr.type=unix,addr.path={socket}"]
    for name in ("one", "mirror"):
        command += ["--export", f"type=nbd,id=export-{name},node-name={name},name={name},writable=on"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        while not socket.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        yield {"one member": Exported(process, socket, "one"), "mirror": Exported(process, socket, "mirror")}
    finally:
        process.terminate()
        process.wait()


def measure(kind: str, jobs: list[Job], servers: dict[str, Server], size: int, seconds: float, rounds: int) -> list[Cell]:
    """Every job against all in turn, in the other direction in every other round."""
    cells = []
    for job in jobs:
        row = [Cell(kind, job, name, []) for name in servers]
        for number in range(rounds):
            for cell in row if number % 2 else reversed(row):
                cell.runs.append(run_job(job, servers[cell.contender], size, seconds))
        cells += row
        one = row[0]
        unit, speed = ("MiB/s", one.speed) if job.sequential else ("kIOPS", one.speed)
        ratios = {cell.contender: statistics.median(there.iops / here.iops for there, here in zip(cell.runs, one.runs)) for cell in row[1:]}
        costs = {cell.contender: cell.cpu / max(one.cpu, 0.01) for cell in row[1:]}
        shown = [f"{ratios[name]:.2f} | {costs[name]:.2f}" if name in ratios else "- | -" for name in ("RAID 0", "mirror")]
        print(f"| {kind} | {job.name} | {speed:.1f} {unit} | {one.cpu:.1f} µs | {' | '.join(shown)} |", flush=True)
    return cells


def virtual(service: Service, job: Job, array: str, options: argparse.Namespace) -> float:
    """I/Os a second of the same array of the same cards in virtual time, with the cost of the card's Linux driver."""
    words = ["sim", options.profile, "--scale", options.scale, "--rw", job.pattern, "--bs", job.block_bytes, "--iodepth", job.depth]
    words += ["--size", options.region, "--precondition", "fill", "--ramp-time", 1, "--runtime", max(1, round(options.seconds)), "--driver", "linux", "--json"]
    report = service.vsl(*words, "--array", {"RAID 0": "raid0", "mirror": "raid1"}.get(array, "single"))
    done = json.loads(report[report.index("{") :])["jobs"][-1]
    return float((done["read"] if job.reads else done["write"])["iops"])


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, required=True, help="the program, built with optimisation")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--mib", type=int, default=384, help="size of each member, MiB")
    parser.add_argument("--only", nargs="*", default=["memory", "file", "quorum", "emulated"], help="kinds of members to measure, or growth")
    parser.add_argument("--profile", default="iodrive-duo-640-mlc", help="of the emulated members: a card of two modules")
    parser.add_argument("--scale", type=int, default=64)
    parser.add_argument("--region", default="512m", help="bytes of the emulated array that are used")
    parser.add_argument("--realtime", action="store_true", help="with real-time priority, where others use the machine (needs root)")
    parser.add_argument("--directory", type=Path, default=HERE / "results" / "arrays", help="on the disk to measure")
    options = parser.parse_args()
    size = options.mib * MIB
    vsl = options.vsl.resolve()
    shutil.rmtree(options.directory, ignore_errors=True)
    options.directory.mkdir(parents=True)
    # What is used of each: arrays keep a part of their members for themselves.
    used = size * 3 // 4
    jobs = random_jobs("randread", [1, 32], [1]) + random_jobs("randread", [32], [4])
    jobs += random_jobs("randwrite", [1, 32], [1]) + sequential_jobs("read", [1]) + sequential_jobs("write", [1])
    for key, value in describe(options.directory, vsl).items():
        print(f"{key}: {value}")
    print("\n| members | load | one member | its CPU an I/O | RAID 0 / one | CPU, / one | mirror / one | CPU, / one |\n|---|---|---:|---:|---:|---:|---:|---:|")
    cells: list[Cell] = []
    with tempfile.TemporaryDirectory(prefix="vsl-bench.") as state:
        first = ["chrt", "-f", "20"] if options.realtime else []
        try:
            for kind in options.only:
                if kind == "quorum":
                    with quorum(options.directory, size) as servers:
                        for server in servers.values():
                            fill(server, used)
                        cells += measure(kind, jobs, servers, used, options.seconds, options.rounds)
                    continue
                (Path(state) / kind).mkdir()
                service = Service(vsl, Path(state) / kind, first)
                try:
                    if kind == "growth":
                        keep("growth", measure_growth(service, options.directory, size, options.rounds))
                        continue
                    servers = members(service, kind, options.directory, size, options)
                    region = int(options.region[:-1]) * MIB if kind == "emulated" else used
                    for server in servers.values():
                        fill(server, region)
                    cells += measure(kind, jobs, servers, region, options.seconds, options.rounds)
                    if kind == "emulated":
                        print("\n| emulated | load | virtual IOPS | emulated IOPS | ratio |\n|---|---|---:|---:|---:|")
                        for cell in [cell for cell in cells if cell.series == kind and cell.job.connections == 1]:
                            modelled = virtual(service, cell.job, cell.contender, options)
                            seen = cell.median(lambda run: run.iops)
                            print(f"| {cell.contender} | {cell.job.name} | {modelled:,.0f} | {seen:,.0f} | {seen / modelled:.2f} |", flush=True)
                finally:
                    service.stop()
        finally:
            shutil.rmtree(options.directory, ignore_errors=True)
            for left in Path("/dev/shm").glob(f"vsl-arrays-{os.getpid()}-*"):
                left.unlink()
    keep("arrays", [cell.as_json() for cell in cells])


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    try:
        main()
    except FioFailed as error:
        raise SystemExit(str(error)) from error
