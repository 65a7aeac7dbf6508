"""Work over processes or a cluster, where it does not matter who does it, nor how often it is begun."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol

# A pool that breaks so often with nothing done between is not tried again.
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


def outcomes(call: Callable[..., str], asked: Sequence[tuple[Any, ...]], pool: Pool | None, workers: int | None) -> Iterator[tuple[int, str | Exception]]:
    """What a pure function says to each of these arguments, or its error, as they come; each by its place.

    Without a `pool` there are as many processes as `workers`, or as there are processors. What a process had when it died, others do.
    """
    wanted = list(range(len(asked)))
    if pool is not None:
        yield from _from(pool, call, asked, wanted)
        return
    tries = 0
    while wanted:
        own = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
        again = []
        try:
            for at, outcome in _from(own, call, asked, wanted):
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


def _from(pool: Pool, call: Callable[..., str], asked: Sequence[tuple[Any, ...]], wanted: list[int]) -> Iterator[tuple[int, str | Exception]]:
    done: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    under_way = 0
    for at in wanted:
        try:
            future = pool.submit(call, *asked[at])
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
