"""The report: docs/bench.md, with a table for files and one for memory, and how each target was met."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from console import Cost, cost_table
from durable import Durable, durable_table, durable_targets
from life import Life, life_table, life_targets
from recovery import Recovery
from scans import scans_table, scans_targets
from series import Cell
from targets import Target, at_least, at_most, targets_table

if TYPE_CHECKING:
    from run import Plan

FILE, MEMORY = ["nbdkit file", "qemu-nbd raw", "vsl file"], ["nbdkit null", "nbdkit memory", "vsl memory"]
# What is asked of each: the least ratio to the peer, by the job's beginning.
TARGETS = [
    ("fresh", "randwrite 4 KiB QD32", "vsl file", "qemu-nbd raw", 2.0),
    ("fresh", "randread 4 KiB QD32", "vsl file", "qemu-nbd raw", 1.0),
    ("fresh", "write 128 KiB", "vsl file", "qemu-nbd raw", 1.0),
    ("fresh", "read 128 KiB", "vsl file", "qemu-nbd raw", 1.0),
    ("fresh", "randwrite 4 KiB QD1 ", "vsl file", "qemu-nbd raw", 1.0),
    ("fresh", "randread 4 KiB QD1 ", "vsl file", "qemu-nbd raw", 1.0),
    ("fresh", "", "vsl memory", "nbdkit memory", 1.0),
    ("sustained", "randwrite 4 KiB QD32", "vsl file", "qemu-nbd raw", 2.0),
    ("groomers", "randwrite 4 KiB QD32", "vsl file", "vsl file greedy", 1.0),
]


@dataclass
class Measured:
    """Everything that one run measured."""

    cells: list[Cell]
    durable: list[Durable]
    lives: list[Life]
    recovery: Recovery
    cost: Cost

    def of(self, series: str) -> list[Cell]:
        """The cells of one series."""
        return [cell for cell in self.cells if cell.series == series]


def write_report(path: Path, machine: dict[str, str], plan: Plan, name: str, caches_dropped: bool, measured: Measured) -> None:
    """Writes it whole."""
    gib = 2**30
    cells, recovery, cost = measured.cells, measured.recovery, measured.cost
    caches = (
        "The page cache was dropped before every read run, so that a peer which reads through it starts from the disk."
        if caches_dropped
        else "The page cache was NOT dropped before read runs (not root): peers that read through it look better than they are."
    )
    parts = [
        "# Measured beside its peers",
        "Made by `make bench`; every figure comes from one run of it. Do not edit: run it again.",
        "\n".join(["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in machine.items())]),
        f"Plan `{name}`: fio's NBD engine over a Unix socket, {plan.seconds:g} s a run, {plan.rounds} runs in turn over all "
        "contenders, medians; ratios are ratios of medians. QD is the depth on each connection, xN the number of connections. "
        "In brackets: processor time of the server for each I/O, in µs (user and system, all threads). "
        f"Files lie on one file system; `qemu-nbd` runs with `--cache=none --aio=io_uring`. {caches}",
        "`nbdkit file` goes through the page cache: its writes need not reach the disk within the run. `nbdkit null` stores "
        "nothing: it is what the protocol and fio's client cost.",
        f"## Fresh\n\nDevices of {plan.size / gib:g} GiB. Before each write run ours is trimmed; the peers' files stay fully "
        "allocated. Reads are of devices written in order.",
        "### On a file",
        table("fresh", FILE, "vsl file", "qemu-nbd raw", cells),
        "### In memory",
        table("fresh", MEMORY, "vsl memory", "nbdkit memory", cells),
        f"## Sustained\n\nDevices of {plan.full_size / gib:g} GiB with 28 % over-provisioning, filled, then overwritten twice at "
        "random: every write makes the groomer work.",
        table("sustained", ["qemu-nbd raw", "vsl file"], "vsl file", "qemu-nbd raw", cells),
        table("sustained", ["nbdkit memory", "vsl memory"], "vsl memory", "nbdkit memory", cells),
        "The default groomer beside the simplest one, each after two drive writes of the same kind:",
        groomer_table(cells),
        f"## Durable writes\n\nThe path of databases: each client writes 8 KiB at random and flushes it, over and over. Devices of {plan.size / gib:g} GiB that "
        "are written already. What reaches the disk is the disk's own count, the file system's journal included.",
        durable_table(measured.durable),
        f"## Scans\n\nReads in order, 128 KiB each, of data that was written in order and then overwritten once at random in 4 KiB. Devices of {plan.scan_size / gib:g} GiB.",
        scans_table(measured.of("scans")),
        "The same after `vsl optimise`:",
        scans_table(measured.of("scans optimised")),
        f"## A device's life\n\nDevices of {plan.scan_size / gib:g} GiB, 4 KiB at depth 32 all the time.\n\n![What clients got in each tenth of a second](pictures/device-life.svg)\n\n"
        "In the picture the numbers are the phases of the table, in its order.",
        life_table(measured.lives),
        "## Coming back",
        f"A device of {recovery.size / gib:g} GiB, every sector written once in random order "
        f"({recovery.fill_seconds:.0f} s, then {recovery.resident_mib:.0f} MiB of memory in the server). Seconds from the start "
        f"of `vsl serve` to its greeting, after a clean end: {_seconds(recovery.clean_seconds)}; after SIGKILL with random "
        f"writes in flight: {_seconds(recovery.crash_seconds)}.",
        "## The console and the service at rest",
        cost_table(cost),
        "## Targets",
        targets_table(speed_targets(cells) + durable_targets(measured.durable) + scans_targets(measured.of("scans") + measured.of("scans optimised")) + life_targets(measured.lives)),
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n\n".join(parts) + "\n")


def _seconds(times: list[float]) -> str:
    return ", ".join(f"{seconds:.2f}" for seconds in times)


def table(series: str, names: list[str], us: str, peer: str, cells: list[Cell]) -> str:
    """One row for each job, one column for each contender, and how ours compares with its peer."""
    lines = [f"| | {' | '.join(names)} | speed, {us} / {peer} | CPU per I/O |", "|---|" + "---:|" * (len(names) + 2)]
    for job in jobs_of(series, cells):
        row = {cell.contender: cell for cell in cells if cell.series == series and cell.job.name == job}
        unit = "MiB/s" if row[us].job.sequential else "k/s"
        figures = [f"{row[name].speed:.{0 if unit == 'MiB/s' else 1}f} {unit} ({row[name].cpu:.1f})" for name in names]
        speed, cpu = row[us].speed / row[peer].speed, row[us].cpu / max(row[peer].cpu, 1e-9)
        lines.append(f"| {job} | {' | '.join(figures)} | **{speed:.2f}** | {cpu:.2f} |")
    return "\n".join(lines)


def groomer_table(cells: list[Cell]) -> str:
    """What the default groomer costs or brings."""
    return table("groomers", ["vsl file greedy", "vsl file"], "vsl file", "vsl file greedy", cells)


def jobs_of(series: str, cells: list[Cell]) -> list[str]:
    """The jobs of a series in the order they ran."""
    return list(dict.fromkeys(cell.job.name for cell in cells if cell.series == series))


def speed_targets(cells: list[Cell]) -> list[Target]:
    """Each target with the worst ratio among its jobs."""
    found = {(cell.series, cell.job.name, cell.contender): cell for cell in cells}
    targets = []
    for series, start, us, peer, least in TARGETS:
        jobs = [job for job in jobs_of(series, cells) if job.startswith(start)]
        what = f"{series}: {start.strip() or 'every job'}, {us} against {peer}"
        targets.append(at_least(what, least, {job: found[series, job, us].speed / found[series, job, peer].speed for job in jobs}))
    ratios = {job: found["fresh", job, "vsl memory"].cpu / max(found["fresh", job, "nbdkit memory"].cpu, 1e-9) for job in jobs_of("fresh", cells)}
    return [*targets, at_most("fresh: CPU for each I/O, vsl memory against nbdkit memory", 1, ratios)]
