"""What it costs that an array gets one more member, and how long a copy that comes back takes: a part of `arrays.py`."""

import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from contenders import Server
from jobs import Figure, Job, fill, run_job
from service import Service

MIB = 1 << 20
# How long an array may take until it is healthy again, seconds.
PATIENCE = 600
# What is written while a copy is away.
MISSED = 16 * MIB
# What clients ask meanwhile.
LOAD = Job("randwrite 4 KiB QD8 x1", "randwrite", 4096, 8, 1)


def healthy(service: Service, array: str, unmarked: bool = False) -> None:
    """Waits until nothing is copied or laid out any more; with `unmarked` until nothing would be copied after a crash either."""
    deadline = time.monotonic() + PATIENCE
    while True:
        status = json.loads(service.vsl("--json", "array", "status", array))
        if status["state"] == "healthy" and not (unmarked and status["dirty_regions"]):
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"{array} is not healthy after {PATIENCE} s")
        time.sleep(0.02)


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


class Bench:
    """Devices of one kind, attached as they are needed."""

    def __init__(self, service: Service, kind: str, directory: Path, size: int) -> None:
        self.service, self.kind, self.directory, self.size = service, kind, directory, size
        self.used = size * 3 // 4
        self.count = 0

    def path(self, name: str) -> Path:
        """The file of a device."""
        return self.directory / f"vsl-growth-{os.getpid()}-{name}.vsl"

    def device(self) -> str:
        """One more device."""
        self.count += 1
        name = f"{self.kind}-{self.count}"
        if self.kind == "memory":
            self.service.vsl("attach", f"memory:{self.size}", "--name", name, "--once")
        else:
            self.service.vsl("create", self.path(name), "--size", self.size)
            self.service.vsl("attach", self.path(name), "--name", name, "--once")
        return name

    def array(self, level: str) -> tuple[str, list[str]]:
        """An array of two, full up to what is used."""
        members = [self.device(), self.device()]
        name = f"{self.kind}-{level}-{self.count}"
        self.service.vsl("array", "create", name, "--level", level, *members)
        fill(self.service.export(name), self.used * (2 if level == "raid0" else 1))
        return name, members

    def delete(self, array: str, members: list[str]) -> None:
        """Ends an array, and its members."""
        self.service.vsl("array", "delete", array, "--yes", "--force")
        for member in members:
            self.service.vsl("detach", member, "--force")
            self.path(member).unlink(missing_ok=True)

    def grown(self, level: str, beside: Callable[[str], None] | None = None) -> tuple[float, float]:
        """Adds a member: MiB/s of what the array holds, and how long that took."""
        array, members = self.array(level)
        new = self.device()

        def grow() -> None:
            self.service.vsl("array", "add", array, new)
            if beside is not None:
                beside(array)
            healthy(self.service, array)

        took = seconds(grow)
        self.delete(array, [*members, new])
        return self.used * (2 if level == "raid0" else 1) / MIB / took, took

    def beside_fio(self) -> tuple[float, float, float]:
        """MiB/s of laying stripes out beside fio, what fio reaches meanwhile, and by itself before; each a thousand I/Os a second."""
        figures: list[Figure] = []

        def load(array: str) -> None:
            # One run after the other until the array is healthy.
            while json.loads(self.service.vsl("--json", "array", "status", array))["state"] != "healthy":
                figures.append(run_job(LOAD, self.service.export(array), 2 * self.used, 1))

        array, members = self.array("raid0")
        alone = run_job(LOAD, self.service.export(array), 2 * self.used, 3).iops
        self.delete(array, members)
        speed, _ = self.grown("raid0", load)
        return speed, statistics.median(figure.iops for figure in figures) / 1000, alone / 1000

    def comes_back(self) -> tuple[float, float, float]:
        """Seconds until a copy that is attached has what it missed, until a new one has everything, and that attaching takes by itself."""
        array, members = self.array("raid1")
        # What was written before would be copied, too.
        healthy(self.service, array, unmarked=True)
        self.service.vsl("detach", members[1], "--force")
        fill(self.service.export(array), MISSED)

        def back() -> None:
            self.service.vsl("attach", self.path(members[1]), "--name", members[1], "--once")
            healthy(self.service, array)

        part = seconds(back)
        self.service.vsl("detach", members[1], "--force")
        new = self.device()

        def replaced() -> None:
            self.service.vsl("array", "replace", array, members[1], "--with", new)
            healthy(self.service, array)

        whole = seconds(replaced)
        alone = seconds(lambda: self.service.vsl("attach", self.path(members[1]), "--name", members[1], "--once"))
        self.delete(array, [members[0], members[1], new])
        return part, whole, alone


def middle(runs: list[tuple[float, ...]]) -> list[float]:
    """The median of each figure."""
    return [statistics.median(values) for values in zip(*runs)]


def measure_growth(service: Service, directory: Path, size: int, rounds: int) -> list[dict]:
    """Prints a table, and gives its rows."""
    rows = []
    print("\n| members | what | |\n|---|---|---:|", flush=True)

    def row(kind: str, what: str, value: float, unit: str) -> None:
        rows.append({"members": kind, "what": what, "value": value, "unit": unit})
        print(f"| {kind} | {what} | {value:.1f} {unit} |", flush=True)

    for kind in ("memory", "files on one disk"):
        bench = Bench(service, kind.split()[0], directory, size)
        speed, _ = middle([bench.grown("raid0") for _ in range(rounds)])
        row(kind, "RAID 0 of two gets a third member: stripes laid out", speed, "MiB/s")
        speed, meanwhile, alone = middle([bench.beside_fio() for _ in range(rounds)])
        row(kind, f"the same beside fio ({LOAD.name})", speed, "MiB/s")
        row(kind, "fio meanwhile", meanwhile, "kIOPS")
        row(kind, "fio before", alone, "kIOPS")
    part, whole, alone = middle([bench.comes_back() for _ in range(rounds)])
    row(kind, f"a mirror's copy is attached, {MISSED // MIB} MiB were written meanwhile", part, "s")
    row(kind, "attaching it takes by itself", alone, "s")
    row(kind, f"a new copy gets everything, {bench.used // MIB} MiB", whole, "s")
    return rows
