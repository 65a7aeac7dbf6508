"""Many simulations at once, over processes or a cluster."""

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from openvsl._openvsl import Table, __version__
from openvsl.pools import Pool, outcomes
from openvsl.simulation import Result, simulate


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
    wanted = [at for at, text in enumerate(texts) if text is None]
    for number, outcome in outcomes(_cell, [(asked[at],) for at in wanted], pool, workers):
        at = wanted[number]
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
