"""Simulations and sweeps, as users of the installed package run them."""

import json
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nanoarrow  # type: ignore[import-untyped]
import pytest

import openvsl

CARD = "iodrive-320-mlc"


def short(**others: Any) -> openvsl.Result:
    """A tenth of a second of small writes."""
    usual: dict[str, Any] = {"profile": CARD, "rw": "randwrite", "iodepth": 8, "runtime": "100ms", "precondition": "fresh"}
    return openvsl.simulate(**usual | others)


def test_loads_name_placements() -> None:
    load: dict[str, Any] = {"name": "objects", "read_percent": 0, "size": "128KiB", "object": "1MiB", "placement": {"among": [1, 3]}}
    workload = {"name": "cache", "phase": [{"name": "measure", "stop": {"bytes": "1GiB"}, "load": [load]}]}
    result = openvsl.simulate(CARD, workload=workload, groomer="placement")
    placed = result.phases[-1]["device_use"]["placed_bytes"]
    assert placed[1] > 0 and placed[3] > 0 and sum(placed) == placed[1] + placed[3]
    with pytest.raises(ValueError, match="load 'objects': placement: the device tells no placements apart"):
        openvsl.simulate(CARD, workload=workload)


def test_a_result_has_figures_and_the_same_arguments_give_the_same() -> None:
    result = short(seed=7)
    assert result == short(seed=7) and result != short(seed=8)
    assert result.setting["profile"] == CARD
    assert result.iops > 1000 and result.bytes_per_second == pytest.approx(4096 * result.iops)
    assert result.write_amplification is not None and result.write_amplification >= 1
    p50, p99 = result.percentile(50), result.percentile(99, "write")
    assert p50 is not None and p99 is not None and 0 < p50 <= p99
    assert result.percentile(50, "read") is None
    assert pickle.loads(pickle.dumps(result)) == result
    assert [job["jobname"] for job in result.json["jobs"]] == ["measure measure"]


def test_tables_hold_every_interval_and_request() -> None:
    result = short(runtime="300ms", interval="100ms")
    intervals, latencies = result.intervals(), result.latencies()
    assert len(intervals) == 3 and intervals.column_names[:2] == ["phase", "end_seconds"]
    assert len(latencies) == len(result.json["jobs"][0]["write"]["clat_ns"]["bins"])
    taken = nanoarrow.ArrayStream(latencies).read_all()
    assert [(field.name, field.type.name) for field in taken.schema.fields] == [
        ("load", "STRING"), ("op", "STRING"), ("latency_ns", "INT64"), ("requests", "INT64"),
    ]  # fmt: skip
    assert sum(row["requests"] for row in taken.to_pylist()) == result.flow("write")["requests"]
    # Each stream is a new one.
    assert len(nanoarrow.ArrayStream(latencies).read_all()) == len(latencies)


def test_an_edited_sheet_and_a_written_workload_are_taken() -> None:
    assert CARD in openvsl.profiles() and "random-write-4k" in openvsl.workloads()
    sheet = openvsl.profile(CARD)
    sheet["module"]["nand"]["program_us"] = [4 * us for us in sheet["module"]["nand"]["program_us"]]
    slower = openvsl.simulate(sheet, rw="randwrite", iodepth=32, runtime="200ms")
    usual = openvsl.simulate(CARD, rw="randwrite", iodepth=32, runtime="200ms")
    assert slower.iops < usual.iops
    written = openvsl.workload("random-write-4k")
    written["name"] = "mine"
    assert openvsl.simulate(CARD, workload=written, runtime="100ms").json["openvsl"]["workload"]["name"] == "mine"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rw": "sideways"}, "sideways"),
        ({"rw": None}, "nothing says what to run"),
        ({"workload": "random-write-4k", "job": "a.fio"}, "expected one of workload, job and trace"),
        ({"workload": "no-such"}, "no-such"),
        ({"format": "huge"}, "format"),
        ({"groomer": "broom"}, "groomer: expected one of"),
        ({"pacing": "even"}, "pacing: expected steady"),
        ({"array": "raid9"}, "raid9"),
        ({"ambient": 500}, "ambient: 500"),
        ({"scale": 0}, "scale"),
        ({"sector": 3}, "sector"),
        ({"driver": "dos"}, "no driver 'dos'"),
        ({"precondition": "washed"}, "washed"),
        ({"interval": "1us"}, "a millisecond"),
        ({"trace": "/no/such.csv"}, "/no/such.csv"),
    ],
)
def test_what_makes_no_sense_is_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        short(**wrong)
    with pytest.raises(ValueError, match="no profile is called 'floppy'"):
        openvsl.simulate("floppy", rw="read")


def test_other_threads_run_and_are_told_and_an_exception_ends_it() -> None:
    told: list[tuple[str, float]] = []

    class Enough(Exception):
        """Of a run that would take hours."""

    def progress(phase: str, done: float) -> None:
        told.append((phase, done))
        if len(told) == 3:
            raise Enough

    counted = 0
    over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.is_set():
            counted += 1
            time.sleep(0.01)

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    with pytest.raises(Enough):
        short(runtime="36000", progress=progress)
    over.set()
    thread.join()
    assert counted > 5 and [phase for phase, _ in told] == ["measure"] * 3
    assert 0 <= told[0][1] <= told[2][1] < 1


def test_an_interrupt_ends_it() -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        short(runtime="36000")


GRID = {"iodepth": [1, 4], "seed": [1, 2]}
CELL: dict[str, Any] = {"profile": CARD, "rw": "randwrite", "runtime": "50ms", "precondition": "fresh"}


def test_a_sweep_is_what_its_cells_are_one_by_one(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    swept = openvsl.sweep(GRID, directory=tmp_path, workers=2, progress=lambda done, of: seen.append((done, of)), **CELL)
    assert [cell for cell, _ in swept] == [{"iodepth": depth, "seed": seed} for depth in (1, 4) for seed in (1, 2)]
    assert all(result == openvsl.simulate(**CELL, **cell) for cell, result in swept)
    assert seen == [(done, 4) for done in range(5)]
    table = swept.table()
    assert len(table) == 4 and table.column_names[:3] == ["iodepth", "seed", "iops"]


class Counting:
    """A pool that counts, and may end in the middle."""

    def __init__(self, most: int = 1000) -> None:
        """Of a thread."""
        self.pool, self.submitted, self.most = ThreadPoolExecutor(1), 0, most

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Counts."""
        if self.submitted == self.most:
            raise KeyboardInterrupt
        self.submitted += 1
        return self.pool.submit(fn, *args)


def test_an_interrupted_sweep_goes_on(tmp_path: Path) -> None:
    first = openvsl.sweep({"iodepth": [1], "seed": [1, 2]}, directory=tmp_path, pool=Counting(), **CELL)
    rest = Counting()
    whole = openvsl.sweep(GRID, directory=tmp_path, pool=rest, **CELL)
    assert rest.submitted == 2 and list(whole)[:2] == list(first)
    again = Counting()
    assert list(openvsl.sweep(GRID, directory=tmp_path, pool=again, **CELL)) == list(whole) and again.submitted == 0
    # Other arguments are other cells.
    other = Counting()
    openvsl.sweep(GRID, directory=tmp_path, pool=other, **CELL | {"runtime": "60ms"})
    assert other.submitted == 4


def test_a_cell_that_fails_costs_only_itself(tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup, match="1 of 3 cells failed") as failed:
        openvsl.sweep([{"iodepth": 1}, {"groomer": "broom"}, {"iodepth": 2}], directory=tmp_path, pool=Counting(), **CELL)
    [error] = failed.value.exceptions
    assert "broom" in error.__notes__[0] and len(list(tmp_path.glob("*.json"))) == 2


def test_a_worker_that_dies_costs_only_its_cells(tmp_path: Path) -> None:
    whole: list[openvsl.Sweep] = []
    grid = {"seed": list(range(12))}
    cell = CELL | {"runtime": "500ms"}
    thread = threading.Thread(target=lambda: whole.append(openvsl.sweep(grid, directory=tmp_path, workers=2, **cell)))
    thread.start()
    # One of the processes, once some cells are done.
    while not list(tmp_path.glob("*.json")):
        time.sleep(0.01)
    workers = [int(pid) for pid in Path(f"/proc/{os.getpid()}/task/{thread.native_id}/children").read_text().split()]
    os.kill(workers[-1], signal.SIGKILL)
    thread.join()
    assert [result for _, result in whole[0]] == [openvsl.simulate(**cell, seed=seed) for seed in range(12)]
