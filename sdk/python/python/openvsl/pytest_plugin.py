"""Fixtures for tests that cut the power."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import openvsl


@pytest.fixture
def make_drill_device(tmp_path: Path) -> Iterator[Callable[..., openvsl.Device]]:
    """Makes drill devices of a size of your choice, and takes them away after the test."""
    with ExitStack() as stack:

        def make(bytes: int = 64 << 20, *, sector_bytes: int = 4096) -> openvsl.Device:
            path = tmp_path / f"drill{len(list(tmp_path.glob('drill*.vsl')))}.vsl"
            openvsl.create(path, bytes, sector_bytes=sector_bytes, drills=True)
            return stack.enter_context(openvsl.Device.open(path))

        yield make


@pytest.fixture
def drill_device(make_drill_device: Callable[..., openvsl.Device]) -> openvsl.Device:
    """A device of 64 MiB whose power can be cut: `drill_device.power_cycle()`."""
    return make_drill_device()
