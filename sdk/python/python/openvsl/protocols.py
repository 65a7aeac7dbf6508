"""Protocols of the lab, their parts over processes or a cluster: what `vsl lab run` does on one machine."""

import json
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from pathlib import Path

from openvsl import _openvsl
from openvsl.pools import Pool, outcomes


def protocols() -> list[str]:
    """The names of the protocols that come with the package."""
    return _openvsl.protocols()


def run_protocol(
    protocol: str | PathLike[str],
    directory: str | PathLike[str],
    *,
    full: bool = False,
    devices: Sequence[str] | None = None,
    formats: Sequence[str] | None = None,
    arrays: Sequence[str] | None = None,
    drivers: Sequence[str] | None = None,
    groomer: str | None = None,
    tests: Sequence[str] = (),
    repeat: int = 1,
    seed: int = 1,
    scale: int | None = None,
    pool: Pool | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Path:
    """Runs a protocol, by its name or from a TOML file, on the devices of data sheets, and gives the run's directory.

    The arguments are the options of `vsl lab run`, and the directory is as it makes them: `vsl lab report`, `compare` and `resume` take it.
    What is done stands there: a run that was interrupted goes on, whether it was begun here or by the command. Parts are handed out as
    the cells of a `sweep` are, with the same `pool`, `workers` and `progress`, and a worker that dies costs its parts only. A protocol that
    plays a trace wants the directory on a file system that all workers see, under the same path.

    Raises ValueError for what makes no sense, FileExistsError where the directory holds another run, and an ExceptionGroup, after all
    others are done, with the error of each part that failed, whose name is noted on it.
    """
    options = {"target": "virtual", "devices": devices or [], "quick": not full, "tests": tests, "repeat": repeat, "seed": seed}
    options |= {"formats": formats, "arrays": arrays, "drivers": drivers, "groomer": groomer, "scale": scale}
    asked = {"protocol": fspath(protocol), "directory": fspath(directory), "options": options}
    run = _openvsl.ProtocolRun(json.dumps(asked, default=list))
    pending, failed = run.pending(), list[Exception]()
    done = run.parts - len(pending)

    def told() -> None:
        if progress is not None:
            progress(done, run.parts)

    told()
    for at, outcome in outcomes(_openvsl.protocol_part, [(run.shared, *part) for part in pending], pool, workers):
        if isinstance(outcome, Exception):
            outcome.add_note(f"in the part {pending[at][0]}")
            failed.append(outcome)
            continue
        run.add(outcome)
        done += 1
        told()
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {run.parts} parts failed", failed)
    run.finish()
    return Path(directory)
