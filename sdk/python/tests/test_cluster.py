"""Sweeps and protocols on a cluster of Dask, as users of the installed package run them."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

import openvsl

PROTOCOL = Path(__file__).parent / "depths.toml"


@pytest.fixture
def cluster() -> Iterator[Client]:
    """Three workers of a process each."""
    # Dask has types, but not everywhere.
    local: Any = LocalCluster
    client: Any = Client
    with local(n_workers=3, threads_per_worker=1, dashboard_address=None) as workers, client(workers) as connected:
        yield connected


def killing(client: Client) -> Callable[[int, int], None]:
    """Kills one of the workers when a quarter is done, once."""
    left = list(client.run(os.getpid).values())[:1]

    def told(done: int, of: int) -> None:
        if left and 4 * done >= of:
            os.kill(left.pop(), signal.SIGKILL)

    return told


def test_a_sweep_is_the_same_though_a_worker_is_killed(tmp_path: Path, cluster: Client) -> None:
    cell: dict[str, Any] = {"profile": "iodrive-320-mlc", "rw": "randwrite", "runtime": "300ms", "precondition": "fresh"}
    workers = set(cluster.run(os.getpid).values())
    swept = openvsl.sweep({"seed": range(16)}, directory=tmp_path, pool=cluster, progress=killing(cluster), **cell)
    assert set(cluster.run(os.getpid).values()) != workers, "one was killed"
    assert [result.text for _, result in swept] == [openvsl.simulate(**cell, seed=seed).text for seed in range(16)]


def lines(run: Path) -> list[dict[str, Any]]:
    """What a run came to, but for the order and the time that it took."""
    whole = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    for line in whole:
        line.pop("wall_seconds", None)
        line.pop("at", None)
    return sorted(whole, key=lambda line: json.dumps(line, sort_keys=True))


def test_a_protocol_is_the_same_though_a_worker_is_killed(tmp_path: Path, cluster: Client) -> None:
    told: list[tuple[int, int]] = []
    alone = openvsl.run_protocol(PROTOCOL, tmp_path / "alone", workers=1, progress=lambda *at: told.append(at))
    assert told == [(done, 6) for done in range(7)]
    workers = set(cluster.run(os.getpid).values())
    run = openvsl.run_protocol(PROTOCOL, tmp_path / "cluster", pool=cluster, progress=killing(cluster))
    assert set(cluster.run(os.getpid).values()) != workers, "one was killed"
    assert lines(run) == lines(alone)


def test_a_run_goes_on_and_is_not_mixed_with_another(tmp_path: Path) -> None:
    arguments: tuple[Path, Path] = (PROTOCOL, tmp_path / "run")

    def interrupt(done: int, of: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        openvsl.run_protocol(*arguments, workers=1, progress=interrupt)
    told: list[int] = []
    run = openvsl.run_protocol(*arguments, workers=1, progress=lambda done, _: told.append(done))
    assert told[0] == 2 and told[-1] == 6
    assert lines(run) == lines(openvsl.run_protocol(PROTOCOL, tmp_path / "alone", workers=1))
    with pytest.raises(FileExistsError, match="holds a run of another protocol or with other options"):
        openvsl.run_protocol(*arguments, seed=2)
    with pytest.raises(ValueError, match="'nothing' is neither a protocol's name nor a file"):
        openvsl.run_protocol("nothing", tmp_path / "nothing")
    with pytest.raises(ValueError, match="devices: .*floppy"):
        openvsl.run_protocol(*arguments, devices=["floppy"])
    assert "near-linear" in openvsl.protocols()
