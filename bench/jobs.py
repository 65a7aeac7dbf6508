"""What is measured: the fio jobs, and how one of them is run against one server."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from contenders import Server


@dataclass(frozen=True)
class Job:
    """One column of the table."""

    name: str
    pattern: str  # fio's rw=
    block_bytes: int
    depth: int  # requests in flight on each connection
    connections: int
    where: str = "random"  # fio's random_distribution=

    @property
    def reads(self) -> bool:
        """Whether it reads."""
        return "read" in self.pattern

    @property
    def sequential(self) -> bool:
        """Whether it is told in MiB/s rather than thousands of I/Os a second."""
        return not self.pattern.startswith("rand")


def random_jobs(pattern: str, depths: list[int], connections: list[int]) -> list[Job]:
    """Random 4 KiB, for each depth and number of connections."""
    return [Job(f"{pattern} 4 KiB QD{depth} x{count}", pattern, 4096, depth, count) for depth in depths for count in connections]


def skewed_jobs(depth: int) -> list[Job]:
    """Random 4 KiB writes: to all sectors alike, four fifths of them to one fifth, and by Zipf's law."""
    where = {"uniform": "random", "80/20": "zoned:80/20:20/80", "Zipf 0.99": "zipf:0.99"}
    return [Job(f"randwrite 4 KiB QD{depth} {name}", "randwrite", 4096, depth, 1, fio) for name, fio in where.items()]


def sequential_jobs(pattern: str, connections: list[int]) -> list[Job]:
    """In order, 128 KiB, eight in flight."""
    return [Job(f"{pattern} 128 KiB QD8 x{count}", pattern, 131072, 8, count) for count in connections]


@dataclass
class Figure:
    """What one run of one job against one server gave."""

    iops: float
    mib_per_second: float
    cpu_us_per_io: float  # of the server
    median_us: float
    p99_us: float


def run_job(job: Job, server: Server, size: int, seconds: float) -> Figure:
    """Runs a job for a fixed time. No ramp: the server's processor time then belongs to exactly the counted I/Os."""
    share = size // job.connections
    before = server.cpu_seconds()
    result = fio(
        [
            f"--uri={server.uri}",
            f"--rw={job.pattern}",
            f"--bs={job.block_bytes}",
            f"--iodepth={job.depth}",
            f"--numjobs={job.connections}",
            f"--size={share}",
            f"--offset_increment={share}",
            "--time_based",
            f"--runtime={round(seconds * 1000)}ms",
            *([f"--random_distribution={job.where}"] if not job.sequential else []),
        ]
    )
    cpu = server.cpu_seconds() - before
    side = result["jobs"][0]["read" if job.reads else "write"]
    percentiles = side["clat_ns"].get("percentile", {})
    return Figure(
        iops=side["iops"],
        mib_per_second=side["bw_bytes"] / 2**20,
        cpu_us_per_io=cpu * 1e6 / max(side["total_ios"], 1),
        median_us=percentiles.get("50.000000", 0) / 1000,
        p99_us=percentiles.get("99.000000", 0) / 1000,
    )


def fill(server: Server, size: int) -> None:
    """Writes the whole device once, in order."""
    fio([f"--uri={server.uri}", "--rw=write", "--bs=1M", "--iodepth=8", f"--size={size}", "--end_fsync=1"])


def overwrite(server: Server, size: int, times: float, where: str = "random") -> None:
    """Writes as much as the device holds, `times` over, at random in 4 KiB."""
    what = ["--rw=randwrite", "--bs=4096", "--iodepth=32", f"--random_distribution={where}"]
    fio([f"--uri={server.uri}", *what, f"--size={size}", f"--io_size={int(size * times)}"])


def empty(server: Server, size: int) -> None:
    """Trims the whole device."""
    fio([f"--uri={server.uri}", "--rw=trim", "--bs=16M", "--iodepth=1", f"--size={size}"])


class FioFailed(Exception):
    """fio ended with an error."""


def fio(options: list[str]) -> dict:
    """Runs fio's NBD engine and gives its report."""
    command = [
        "fio", "--name=job", "--ioengine=nbd", "--output-format=json", "--group_reporting",
        "--norandommap", "--randrepeat=0", *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise FioFailed(f"fio failed: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout[done.stdout.index("{") :])


def drop_caches() -> bool:
    """Empties the page cache, so that a peer which reads through it reads the disk; needs root."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    except PermissionError:
        return False
    return True
