"""The package as its users have it: installed from the wheel."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import openvsl

SECTOR = 4096


def test_what_was_written_is_read_after_the_device_was_closed(tmp_path: Path) -> None:
    path = tmp_path / "data.vsl"
    openvsl.create(path, 64 << 20, label="mine")
    with pytest.raises(openvsl.OpenError, match="exists already"):
        openvsl.create(path, 64 << 20)
    with openvsl.Device.open(path) as device:
        assert (device.sector_bytes, device.sectors, device.max_write_bytes) == (SECTOR, 16384, 1 << 20)
        device.write(3, b"\x01" * SECTOR + b"\x02" * SECTOR)
        assert device.read(4) == b"\x02" * SECTOR
        with pytest.raises(openvsl.OpenError, match="data.vsl"):
            openvsl.Device.open(path)
    with pytest.raises(openvsl.Closed):
        device.read(3)
    device.close()
    with openvsl.Device.open(path, read_only=True) as device:
        assert device.read(3, 2) == b"\x01" * SECTOR + b"\x02" * SECTOR
        assert list(device.ranges()) == [range(3, 5)]
        with pytest.raises(openvsl.ReadOnly):
            device.write(0, bytes(SECTOR))


def test_every_kind_of_memory_is_taken_and_none_is_copied_twice() -> None:
    device = openvsl.Device.memory(64 << 20)
    whole = bytearray(range(256)) * 64
    for data in (bytes(whole), whole, memoryview(whole)[SECTOR : 2 * SECTOR]):
        device.write(0, data)
        assert device.read(0, len(data) // SECTOR) == data
    view = device.read(0, 1)
    assert isinstance(view, memoryview)
    assert view.readonly
    device.write(0, bytes(SECTOR))
    assert view == whole[:SECTOR], "what was read stays as it was read"
    room = bytearray(2 * SECTOR)
    device.read_into(0, memoryview(room)[SECTOR:])
    assert room == bytes(2 * SECTOR)
    with pytest.raises(BufferError):
        device.read_into(0, bytes(SECTOR))
    with pytest.raises(BufferError):
        device.write(0, memoryview(whole)[::2])


def test_what_cannot_be_is_refused_by_name() -> None:
    device = openvsl.Device.memory(64 << 20)
    with pytest.raises(openvsl.InvalidRequest, match="100 bytes are no whole sectors of 4096"):
        device.write(0, bytes(100))
    with pytest.raises(openvsl.InvalidRequest, match="16384"):
        device.read(16384)
    with pytest.raises(openvsl.InvalidRequest, match="larger than the device takes"):
        device.write(0, bytes((1 << 20) + SECTOR))
    with pytest.raises(openvsl.InvalidRequest, match="not marked for drills"):
        device.cut_power()
    with pytest.raises(openvsl.OpenError, match="nvme"):
        openvsl.Device.connect("localhost:4420")
    with pytest.raises(OverflowError):
        device.read(-1)
    assert list(device.ranges()) == []


def test_threads_share_a_device() -> None:
    device = openvsl.Device.memory(64 << 20)

    def write(first: int) -> None:
        for lba in range(first, first + 200):
            device.write(lba, bytes([lba % 256]) * SECTOR)

    threads = [threading.Thread(target=write, args=(first,)) for first in range(0, 800, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(device.ranges()) == [range(800)]
    assert all(device.read(lba) == bytes([lba % 256]) * SECTOR for lba in range(800))
    device.trim(1, 798)
    assert list(device.ranges(0, 800)) == [range(1), range(799, 800)]
    assert (device.exists(0), device.exists(1)) == (True, False)


def test_coroutines_wait_in_threads_side_by_side() -> None:
    device = openvsl.Device.memory(64 << 20)

    async def write(lba: int) -> memoryview:
        await asyncio.to_thread(device.write, lba, bytes([lba]) * SECTOR, durable=True)
        return await asyncio.to_thread(device.read, lba)

    async def all_of_them() -> list[memoryview]:
        return await asyncio.gather(*map(write, range(1, 100)))

    assert [bytes(data[:1]) for data in asyncio.run(all_of_them())] == [bytes([lba]) for lba in range(1, 100)]


def test_a_batch_is_there_as_a_whole(drill_device: openvsl.Device) -> None:
    drill_device.write(5, bytes(SECTOR))
    drill_device.batch([(1, b"\x01" * SECTOR), (900, bytearray(b"\x02" * 2 * SECTOR))], trims=[(5, 1)], durable=True)
    with pytest.raises(openvsl.InvalidRequest, match="operations 0 and 1 of the batch overlap"):
        drill_device.batch([(1, bytes(SECTOR)), (1, bytes(SECTOR))])
    with pytest.raises(openvsl.InvalidRequest, match="no operations"):
        drill_device.batch()
    drill_device.power_cycle()
    assert list(drill_device.ranges()) == [range(1, 2), range(900, 902)]
    assert drill_device.read(900, 2) == b"\x02" * 2 * SECTOR


def test_what_was_durable_survives_a_power_cut(drill_device: openvsl.Device) -> None:
    drill_device.write(0, b"\x01" * SECTOR, durable=True)
    drill_device.power_cycle()
    assert drill_device.read(0) == b"\x01" * SECTOR


def test_the_power_goes_with_the_write_that_was_named(make_drill_device: Callable[..., openvsl.Device]) -> None:
    device = make_drill_device(64 << 20, sector_bytes=512)
    device.write(0, b"\x01" * 1024)
    device.flush()
    device.cut_power(at_write=2, unsynced="drop", seed=7)
    device.write(0, b"\x02" * 1024)
    with pytest.raises(openvsl.PowerOff):
        device.write(8, b"\x02" * 1024)
    with pytest.raises(openvsl.PowerOff):
        device.flush()
    device.power_cycle()
    assert device.read(0, 2) == b"\x01" * 1024
    with pytest.raises(openvsl.InvalidRequest, match="expected one of"):
        device.cut_power(unsynced="burn")  # type: ignore[arg-type]
