"""Many simulations at once, over processes or a cluster."""

import hashlib
import itertools
import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol, final

from openvsl._openvsl import Table, __version__
from openvsl.simulation import Result, simulate

# A pool that breaks so often with no cell done between is not tried again.
TRIES = 3


class Future(Protocol):
    """What a pool gives for what it is to do."""

    def result(self) -> Any:
        """What came of it."""

    def add_done_callback(self, fn: Callable[[Any], Any], /) -> Any:
        """Calls a function when it is done."""


class Pool(Protocol):
    """An executor of `concurrent.futures`, a `distributed.Client` of Dask, or anything else that takes work so."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future:
        """Has a function called somewhere."""


@final
class Sweep(Sequence[tuple[dict[str, Any], Result]]):
    """What a sweep came to: each cell's arguments, and its result, in the order of the grid."""

    def __init__(self, cells: list[tuple[dict[str, Any], Result]]) -> None:
        """Of cells that are done."""
        self._cells = cells

    def __len__(self) -> int:
        """How many cells there are."""
        return len(self._cells)

    def __getitem__(self, at: Any) -> Any:
        """A cell, or several."""
        return self._cells[at]

    def __iter__(self) -> Iterator[tuple[dict[str, Any], Result]]:
        """Each cell."""
        return iter(self._cells)

    def table(self) -> Table:
        """A row for each cell: what was varied, and the figures of its last phase."""
        names = list(dict.fromkeys(name for cell, _ in self._cells for name in cell))
        columns: list[tuple[str, list[Any]]] = []
        for name in names:
            values = [cell.get(name) for cell, _ in self._cells]
            plain = all(value is None or type(value) in (int, float) for value in values)
            columns.append((name, values if plain else [None if value is None else _word(value) for value in values]))
        results = [result for _, result in self._cells]
        columns += [
            ("iops", [result.iops for result in results]),
            ("bytes_per_second", [result.bytes_per_second for result in results]),
            ("mean_ns", [float(result.flow()["latency"]["mean_ns"]) for result in results]),
            ("p99_ns", [result.percentile(99) for result in results]),
            ("write_amplification", [result.write_amplification for result in results]),
        ]
        return Table(columns)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def sweep(
    grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    *,
    directory: str | os.PathLike[str] | None = None,
    pool: Pool | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    **fixed: Any,
) -> Sweep:
    """Simulates each cell of a grid: every combination of its values, or each mapping of a list, beside `fixed` arguments of `simulate`.

    Results that are done stand in `directory`, and a sweep that was interrupted goes on from there: a cell is known by its arguments
    and the package's version. (What a file holds that they name is not looked at.) Without a `pool` there are as many processes as
    `workers`, or as there are processors. A worker that dies costs its cells only, which others do again: each is a pure function of
    its arguments. `progress` is told how many cells are done, and of how many.

    Raises an ExceptionGroup, after all others are done, with the error of each cell that failed, whose arguments are noted on it.
    """
    if isinstance(grid, Mapping):
        cells = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    else:
        cells = [dict(cell) for cell in grid]
    store = None if directory is None else _Store(Path(directory))
    asked = [fixed | cell for cell in cells]
    texts: list[str | None] = [None if store is None else store.read(arguments) for arguments in asked]
    failed: list[Exception] = []

    def told() -> None:
        if progress is not None:
            progress(sum(text is not None for text in texts), len(texts))

    told()
    for at, outcome in _outcomes(asked, [at for at, text in enumerate(texts) if text is None], pool, workers):
        if isinstance(outcome, Exception):
            outcome.add_note(f"in the cell {cells[at]}")
            failed.append(outcome)
            continue
        texts[at] = outcome
        if store is not None:
            store.write(asked[at], outcome)
        told()
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {len(cells)} cells failed", failed)
    return Sweep([(cell, Result(text)) for cell, text in zip(cells, texts, strict=True) if text is not None])


def _cell(arguments: dict[str, Any]) -> str:
    return simulate(**arguments).text


def _outcomes(asked: list[dict[str, Any]], wanted: list[int], pool: Pool | None, workers: int | None) -> Iterator[tuple[int, str | Exception]]:
    """The text or the error of each cell, as they come."""
    if pool is not None:
        yield from _from(pool, asked, wanted)
        return
    tries = 0
    while wanted:
        own = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
        again = []
        try:
            for at, outcome in _from(own, asked, wanted):
                # A process died, and the pool with it: nobody knows whose fault that was.
                if isinstance(outcome, BrokenProcessPool):
                    again.append((at, outcome))
                else:
                    yield at, outcome
        finally:
            own.shutdown(wait=False, cancel_futures=True)
        tries = tries + 1 if len(again) == len(wanted) else 0
        if tries == TRIES:
            yield from again
            return
        wanted = [at for at, _ in again]


def _from(pool: Pool, asked: list[dict[str, Any]], wanted: list[int]) -> Iterator[tuple[int, str | Exception]]:
    done: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    under_way = 0
    for at in wanted:
        try:
            future = pool.submit(_cell, asked[at])
        except BrokenProcessPool as broken:
            yield at, broken
        else:
            future.add_done_callback(partial(_put, done, at))
            under_way += 1
    for _ in range(under_way):
        at, future = done.get()
        try:
            yield at, future.result()
        except Exception as error:
            yield at, error


def _put(done: SimpleQueue[tuple[int, Any]], at: int, future: Any) -> None:
    done.put((at, future))


class _Store:
    """Results in files, each named by what its cell asked for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def _path(self, arguments: dict[str, Any]) -> Path:
        asked = json.dumps([__version__, arguments], sort_keys=True, default=os.fspath)
        return self._directory / f"{hashlib.sha256(asked.encode()).hexdigest()[:32]}.json"

    def read(self, arguments: dict[str, Any]) -> str | None:
        try:
            return self._path(arguments).read_text()
        except FileNotFoundError:
            return None

    def write(self, arguments: dict[str, Any], text: str) -> None:
        """In one go: a file that is there is whole."""
        path = self._path(arguments)
        begun = path.with_suffix(f".{os.getpid()}")
        begun.write_text(text)
        begun.rename(path)
