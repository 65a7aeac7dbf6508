"""Cards, drives and disks in virtual time: what `vsl sim` does, from Python."""

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias, final

from openvsl import _openvsl
from openvsl._openvsl import Table

Path: TypeAlias = str | PathLike[str]
Sheet: TypeAlias = Mapping[str, Any]
Option: TypeAlias = str | int | float
Progress: TypeAlias = Callable[[str, float], object]


def profiles() -> list[str]:
    """The names of the data sheets."""
    return _openvsl.data_sheets()


def profile(name: str) -> dict[str, Any]:
    """The data sheet of a name: change what you like of it, and simulate that."""
    sheet: dict[str, Any] = json.loads(_openvsl.data_sheet(name))
    return sheet


def workloads() -> list[str]:
    """The names of the workloads that come with the package."""
    return _openvsl.named_workloads()


def workload(name: str) -> dict[str, Any]:
    """The workload of a name, or of a file in TOML, JSON or Iometer's .icf: to be changed, like a data sheet."""
    written: dict[str, Any] = json.loads(_openvsl.named_workload(name))
    return written


def simulate(
    profile: str | Sheet,
    *,
    workload: Path | Sheet | None = None,
    job: Path | None = None,
    trace: Path | Sheet | None = None,
    rw: str | None = None,
    bs: Option | None = None,
    bssplit: str | None = None,
    rwmixread: Option | None = None,
    iodepth: Option | None = None,
    numjobs: Option | None = None,
    runtime: Option | None = None,
    ramp_time: Option | None = None,
    size: Option | None = None,
    offset: Option | None = None,
    rate_iops: Option | None = None,
    rate_process: str | None = None,
    random_distribution: str | None = None,
    percentage_random: Option | None = None,
    precondition: Literal["fresh", "fill", "random", "workload"] | None = None,
    seed: int | None = None,
    interval: str | None = None,
    format: str | None = None,
    array: str | None = None,
    driver: str | None = None,
    sector: int | None = None,
    scale: int | None = None,
    write_cache: bool | None = None,
    ambient: float | None = None,
    airflow: float | None = None,
    external_power: bool = False,
    groomer: str | None = None,
    pacing: str | None = None,
    idle_grooming: bool | None = None,
    progress: Progress | None = None,
) -> "Result":
    """Runs a workload on the device of a data sheet, and gives what came of it. Equal arguments give equal results, byte for byte.

    The arguments are the options of `vsl sim`, which `vsl sim --help` explains: `rw` to `percentage_random` are fio's, and are the
    workload or change one. A `trace` is a file, or `{"file": ..., "format": ..., "volume": ..., "map": ..., "pace": ...}`. A scale
    of 1 is the full size; 64 is usual. `progress` is told the name of the phase and how much of the whole is done, 0 to 1.

    Other threads run meanwhile. Raises ValueError for what makes no sense, and SimulationError where the model fails a request.
    """
    asked = {name: value for name, value in locals().items() if value is not None and name != "progress"}
    given = {name: str(asked.pop(name)) for name in OPTIONS if name in asked}
    for name in ("workload", "job", "trace"):
        if name in asked and not isinstance(asked[name], Mapping):
            asked[name] = fspath(asked[name])
    if isinstance(asked.get("trace"), str):
        asked["trace"] = {"file": asked["trace"]}
    return Result(_openvsl.run(json.dumps(asked | {"options": given}, default=dict), progress))


OPTIONS = (
    "rw", "bs", "bssplit", "rwmixread", "iodepth", "numjobs", "runtime", "ramp_time", "size", "offset", "rate_iops", "rate_process",
    "random_distribution", "percentage_random",
)  # fmt: skip


@final
class Result:
    """What a simulation comes to. It can be pickled; `text` is all of it."""

    def __init__(self, text: str) -> None:
        """From the text of another."""
        self.text = text

    @cached_property
    def json(self) -> dict[str, Any]:
        """What `vsl sim --json` prints: fio's json+, and under `openvsl` all that fio has no place for."""
        whole: dict[str, Any] = json.loads(self.text)
        return whole

    @property
    def setting(self) -> dict[str, Any]:
        """The device and the host, as they were simulated."""
        setting: dict[str, Any] = self.json["openvsl"]["setting"]
        return setting

    @property
    def phases(self) -> list[dict[str, Any]]:
        """The phases that were measured."""
        return [phase for phase in self.json["openvsl"]["phases"] if phase["measured"]]

    @property
    def iops(self) -> float:
        """Requests a second, in the last phase."""
        return float(self.flow()["iops"])

    @property
    def bytes_per_second(self) -> float:
        """Bytes a second, in the last phase."""
        return float(self.flow()["bytes_per_second"])

    @property
    def write_amplification(self) -> float | None:
        """Bytes on media for each byte that the host wrote, in the last phase; None where it wrote nothing, or the device has no flash."""
        split = self.phases[-1]["device_use"].get("write_amplification")
        return None if split is None else float(split["total"])

    def flow(self, op: Literal["all", "read", "write", "trim"] = "all") -> dict[str, Any]:
        """Requests, bytes, rates and latency of the last phase, by what they do."""
        flow: dict[str, Any] = self.phases[-1]["total"][op]
        return flow

    def percentile(self, percent: float, op: Literal["all", "read", "write", "trim"] = "all") -> int | None:
        """A percentile of latency in the last phase, ns: 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9 …; None where too few requests stand behind it."""
        return next((known["ns"] for known in self.flow(op)["latency"]["percentiles"] if known["percent"] == percent), None)

    def intervals(self) -> Table:
        """A row for each interval of each phase."""
        rows = [(phase["name"], row, row["ops"], row["device_use"]) for phase in self.phases for row in phase["series"]]
        return _table(
            phase=[name for name, *_ in rows],
            end_seconds=[float(row["end_seconds"]) for _, row, _, _ in rows],
            **{f"{op}_iops": [float(ops[op]["iops"]) for _, _, ops, _ in rows] for op in ("all", "read", "write", "trim")},
            bytes_per_second=[float(ops["all"]["bytes_per_second"]) for _, _, ops, _ in rows],
            mean_ns=[float(ops["all"]["latency"]["mean_ns"]) for _, _, ops, _ in rows],
            max_ns=[int(ops["all"]["latency"]["max_ns"]) for _, _, ops, _ in rows],
            host_written_bytes=[int(used["host_written_bytes"]) for *_, used in rows],
            media_written_bytes=[int(used["media_written_bytes"]) for *_, used in rows],
            watts=[float(used["watts"]) for *_, used in rows],
        )

    def latencies(self) -> Table:
        """How many requests took how long, to three digits: a row for each load of each phase, what they do, and latency that occurred."""
        bins = [
            (job["jobname"], op, int(ns), int(requests))
            for job in self.json["jobs"]
            for op in ("read", "write", "trim")
            for ns, requests in job[op]["clat_ns"].get("bins", {}).items()
        ]
        return _table(
            load=[load for load, *_ in bins],
            op=[op for _, op, *_ in bins],
            latency_ns=[ns for _, _, ns, _ in bins],
            requests=[requests for *_, requests in bins],
        )

    def __eq__(self, other: object) -> bool:
        """Whether both are the same, byte for byte."""
        return isinstance(other, Result) and self.text == other.text

    def __hash__(self) -> int:
        """Of the text."""
        return hash(self.text)

    def __reduce__(self) -> tuple[type["Result"], tuple[str]]:
        """The text is all of it."""
        return Result, (self.text,)

    def __repr__(self) -> str:
        """The device and the rate."""
        return f"<openvsl.Result {self.setting['profile']}: {self.iops:,.0f} requests/s>"


def _table(**columns: list[Any]) -> Table:
    return Table(list(columns.items()))
