"""Devices get another size under fio verify over NBD: files grow, what holds data is never cut off, a kill in the middle leaves the old size or the new one, and encryption, parity, snapshots and emulated cards are heard."""

import errno
import json
import random
import threading
import time

from harness import MIB, World, check, equal
from harness.fio import fio
from harness.libnbd import connect
from harness.libnbd import refused as libnbd_refused
from harness.servers import Device, kill

OURS = True
LIMIT = 180


def run(world: World) -> None:
    device = world.device(64 * MIB)
    under_load(world, device)
    shrinks(world, device)
    killed(world, device)
    others(world)


def size_of(world: World, device: Device) -> int:
    """Host capacity in bytes, as a client that connects now sees it."""
    return int(world.run("nbdinfo", "--size", device.uri).out)


def refused(world: World, what: str, *arguments: object) -> None:
    """`vsl resize` says this and changes nothing."""
    said = world.vsl("resize", *arguments, fails=True).text
    check(what in said, f"expected '{what}': {said}")


def under_load(world: World, device: Device) -> None:
    """Grows, and grows again, while fio writes and verifies; a client that was there goes on with the size that it knows."""
    early = connect(device)
    done = []
    job = ["--rw=randwrite", "--bs=4k", "--iodepth=16", f"--size={48 * MIB}", "--verify=crc32c", "--do_verify=1", "--loops=3"]
    work = threading.Thread(target=lambda: done.append(fio(world, device, *job)))
    work.start()
    raw = device.path.stat().st_size
    for mebibytes in (96, 256, 1024):
        time.sleep(0.3)
        said = world.vsl("resize", device.name, f"{mebibytes}MiB").out
        check(said.startswith(f"resized {device.name}: "), said)
        equal(size_of(world, device), mebibytes * MIB, "bytes for a client that connects now")
        check(device.path.stat().st_size > raw, "its file did not grow")
        raw = device.path.stat().st_size
    work.join()
    check(done, "fio failed")
    equal(early.get_size(), 64 * MIB, "what an earlier client knows")
    fio(world, device, "--rw=write", "--bs=1m", f"--size={900 * MIB}", "--verify=crc32c", "--do_verify=1")
    events = json.loads(world.vsl("--json", "events", device.name).out)
    equal([e["event"] for e in events["events"] if e["event"] == "resized"], ["resized"] * 3, "events")
    refused(world, "at least the", device.name, "--raw", "64MiB")
    refused(world, "bytes on a raw capacity of", device.name, "100TiB", "--raw", "2GiB")


def shrinks(world: World, device: Device) -> None:
    """Only where nothing holds data, nor any snapshot; and what lay beyond never comes back."""
    refused(world, "byte 134217728 holds data", device.name, "128MiB")
    handle = connect(device)
    handle.trim(handle.get_size() - 128 * MIB, 128 * MIB)
    handle.pwrite(b"x" * 4096, 512 * MIB)
    world.vsl("snapshot", "create", device.name, "before")
    handle.trim(4096, 512 * MIB)
    refused(world, 'the snapshot "before"', device.name, "128MiB")
    world.vsl("snapshot", "delete", device.name, "before")
    world.wait(lambda: world.vsl("resize", device.name, "128MiB", fails=None).code == 0, "the snapshot's space")
    equal(size_of(world, device), 128 * MIB, "bytes")
    # Whoever was there before the device shrank is refused what lies beyond.
    handle.set_strict_mode(0)
    libnbd_refused("a read beyond", errno.EINVAL, lambda: handle.pread(4096, 512 * MIB))
    libnbd_refused("a write beyond", errno.ENOSPC, lambda: handle.pwrite(bytes(4096), 512 * MIB))
    libnbd_refused("a look beyond", errno.EINVAL, lambda: handle.block_status(128 * MIB, 100 * MIB, lambda *_: 0))
    handle = connect(device)
    check(handle.pread(4096, 128 * MIB - 4096) != bytes(4096), "the last sector is gone")
    kill(device)
    world.servers.revive(device)
    equal(size_of(world, device), 128 * MIB, "bytes after a kill")
    world.vsl("resize", device.name, "1GiB")
    handle = connect(device)
    check(handle.pread(4096, 512 * MIB) == bytes(4096), "what was trimmed before a device shrank came back when it grew")


def killed(world: World, device: Device) -> None:
    """kill -9 at some moment of a resize: the size is the old one or the new one, and what was answered is there."""
    sizes = {1024 * MIB}
    for number in range(6):
        handle = connect(device)
        handle.pwrite(bytes([number + 1]) * 4096, number * MIB)
        sizes = {size_of(world, device), (1100 + 50 * number) * MIB}
        client = world.start(world.vsl_path, "resize", device.name, max(sizes), log=f"resize-{number}")
        time.sleep(random.uniform(0, 0.05))
        kill(device)
        client.wait()
        world.servers.revive(device)
        check(size_of(world, device) in sizes, f"{size_of(world, device)} bytes, and it should be one of {sizes}")
        for written in range(number + 1):
            equal(connect(device).pread(4096, written * MIB), bytes([written + 1]) * 4096, "what was written before a kill")
    world.vsl("resize", device.name, 2048 * MIB)
    fio(world, device, "--rw=randwrite", "--bs=64k", f"--size={512 * MIB}", "--offset=1400m", "--verify=crc32c", "--do_verify=1")


def others(world: World) -> None:
    """Encrypted, on several files, with parity, emulated, sparse, in memory."""
    key = world.dir / "key"
    key.write_bytes(bytes(range(32)))
    world.vsl("create", world.dir / "sealed.vsl", "--size", "64MiB", "--encrypt", "--key-file", key)
    world.vsl("attach", "sealed.vsl", "--key-file", key)
    world.vsl("resize", "sealed", "128MiB")
    sealed = Device("sealed", world.dir / "sealed.vsl", 128 * MIB, world.servers.uri("sealed"))
    fio(world, sealed, "--rw=randwrite", "--bs=4k", f"--size={16 * MIB}", "--offset=100m", "--verify=crc32c", "--do_verify=1")
    striped = [world.dir / f"s{n}.vsl" for n in range(3)]
    world.vsl("create", *striped, "--size", "96MiB", "--parity", 0)
    world.vsl("attach", ",".join(str(path) for path in striped), "--name", "striped")
    world.vsl("resize", "striped", "192MiB")
    striped_device = Device("striped", striped[0], 192 * MIB, world.servers.uri("striped"))
    fio(world, striped_device, "--rw=randwrite", "--bs=4k", f"--size={16 * MIB}", "--offset=150m", "--verify=crc32c", "--do_verify=1")
    equal(len({path.stat().st_size for path in striped}), 1, "sizes of its files")
    parity = [world.dir / f"p{n}.vsl" for n in range(3)]
    world.vsl("create", *parity, "--size", "128MiB", "--parity", 1, "--capacity", "50%")
    world.vsl("attach", ",".join(str(path) for path in parity), "--name", "parity")
    refused(world, "journal of its parity", "parity", "128MiB", "--raw", "1GiB")
    world.vsl("resize", "parity", "128MiB")
    equal(size_of(world, Device("parity", parity[0], 0, world.servers.uri("parity"))), 128 * MIB, "bytes")
    world.vsl("create", world.dir / "card.vsl", "--emulate", "iodrive-320-mlc", "--scale", 64)
    world.vsl("attach", "card.vsl")
    refused(world, "an emulated card keeps its size", "card", "64MiB")
    world.vsl("create", world.dir / "wide.vsl", "--size", "128MiB", "--address-space", "1TiB")
    world.vsl("attach", "wide.vsl")
    world.vsl("resize", "wide", "2TiB")
    refused(world, "expected", "wide", "64MiB")
    world.vsl("resize", "wide", "--raw", "1GiB")
    world.vsl("attach", "memory:64MiB", "--name", "volatile")
    world.vsl("resize", "volatile", "128MiB")
    # Each after a clean detach, too.
    world.vsl("detach", "striped")
    world.vsl("attach", ",".join(str(path) for path in striped), "--name", "striped")
    equal(size_of(world, striped_device), 192 * MIB, "bytes after a clean detach")
