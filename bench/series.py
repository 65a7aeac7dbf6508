"""A series: some jobs against some contenders, in turn (A B C A B C …), so that a slow moment of the machine hits all alike."""

import os
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass

from contenders import Server
from jobs import Figure, Job, drop_caches, run_job


@dataclass
class Cell:
    """One job against one contender: every run."""

    series: str
    job: Job
    contender: str
    runs: list[Figure]

    def median(self, of: Callable[[Figure], float]) -> float:
        """The median over the runs."""
        return statistics.median(of(run) for run in self.runs)

    @property
    def speed(self) -> float:
        """kIOPS, or MiB/s for a sequential job."""
        return self.median(lambda run: run.mib_per_second if self.job.sequential else run.iops / 1000)

    @property
    def cpu(self) -> float:
        """Server CPU µs for each I/O."""
        return self.median(lambda run: run.cpu_us_per_io)

    def as_json(self) -> dict:
        """Everything, raw."""
        runs = [asdict(run) for run in self.runs]
        return {"series": self.series, "job": asdict(self.job), "contender": self.contender, "runs": runs}


def measure(
    series: str,
    jobs: list[Job],
    servers: dict[str, Server],
    size: int,
    seconds: float,
    rounds: int,
    before: Callable[[str, Server], None] = lambda name, server: None,
) -> list[Cell]:
    """Runs every job `rounds` times against every server in turn; `before` prepares a server for each run."""
    cells = []
    for job in jobs:
        row = [Cell(series, job, name, []) for name in servers]
        for _ in range(rounds):
            for cell in row:
                server = servers[cell.contender]
                before(cell.contender, server)
                # Who writes through the page cache leaves work to the kernel, which whoever comes next would pay for.
                os.sync()
                if job.reads:
                    drop_caches()
                cell.runs.append(run_job(job, server, size, seconds))
        cells += row
        unit = "MiB/s" if job.sequential else "kIOPS"
        shown = "  ".join(f"{cell.contender} {cell.speed:.1f} ({cell.cpu:.1f} µs)" for cell in row)
        print(f"{series}: {job.name} [{unit}]: {shown}", flush=True)
    return cells
