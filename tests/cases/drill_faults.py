"""Drills on dies and sectors: a killed die is rebuilt, rot heals with parity and is an error without, and every fault ends with its undoing."""

import errno
import time

from harness import MIB, Device, World, check, equal
from harness.fio import fio
from harness.libnbd import connect, refused

OURS = True
SIZE = 256 * MIB
BLOCK = 4096
VERIFY = ["--rw=randwrite", "--bsrange=4k-64k", "--size=96M", "--iodepth=16", "--verify=crc32c", "--fsync=16"]


def run(world: World) -> None:
    world.servers.up()
    with_parity(world)
    without(world)


def made(world: World, name: str, files: int, *options: object) -> Device:
    """A drill device on so many files."""
    paths = [world.dir / f"{name}{number}.vsl" for number in range(files)]
    world.vsl("create", *paths, "--size", SIZE, "--drills", *options)
    world.vsl("attach", *paths, "--name", name)
    return Device(name, paths[0], SIZE, world.servers.uri(name))


def field(world: World, device: Device, name: str) -> str:
    """A figure of its status."""
    return world.vsl("status", device.name, "--field", name).out.strip()


def with_parity(world: World) -> None:
    """Four files, one of them parity."""
    device = made(world, "striped", 4, "--parity", 1)
    fio(world, device, *VERIFY, "--do_verify=1")
    world.vsl("drill", "striped", "kill-die", 1)
    fio(world, device, *VERIFY, "--verify_only=1")
    fio(world, device, *VERIFY, "--do_verify=1", "--randseed=2")
    equal(field(world, device, "health"), "degraded: 1 of 4 dies out of service", "health with a killed die")
    equal(field(world, device, "drills"), "kill-die 1", "drills")
    said = world.vsl("rebuild", "striped", 1, fails=True).text
    check("undo kill-die" in said, said)
    # It stays dead while the power is off and on.
    world.vsl("drill", "striped", "power-cut")
    world.vsl("drill", "striped", "power-on")
    equal(field(world, device, "drills"), "kill-die 1", "drills after a power cut")
    fio(world, device, *VERIFY, "--verify_only=1", "--randseed=2")
    world.vsl("drill", "striped", "undo", "kill-die")
    world.vsl("rebuild", "striped", 1, "--wait")
    equal(field(world, device, "health"), "healthy", "health after the rebuild")
    fio(world, device, *VERIFY, "--verify_only=1", "--randseed=2")

    # What rots is read all the same, and mended.
    handle = connect(device)
    content = bytes(number % 251 for number in range(64 * BLOCK))
    handle.pwrite(content, 128 * MIB)
    world.vsl("drill", "striped", "rot", f"{128 * MIB // BLOCK}+20")
    before = int(field(world, device, "healed_sectors"))
    equal(bytes(handle.pread(len(content), 128 * MIB)), content, "what rots under parity")
    equal(int(field(world, device, "healed_sectors")) - before, 20, "healed sectors")
    world.vsl("drill", "striped", "undo", "all")
    world.vsl("scrub", "striped", "--wait")
    equal(bytes(handle.pread(len(content), 128 * MIB)), content, "what rotted, after the drill")
    handle.shutdown()
    world.vsl("detach", "striped", "--force")


def without(world: World) -> None:
    """One file."""
    device = made(world, "single", 1)
    handle = connect(device)
    content = bytes(number % 251 for number in range(64 * BLOCK))
    handle.pwrite(content, 0)
    for drill in ["rot", "fail-reads"]:
        world.vsl("drill", "single", drill, "10+3")
        refused(f"a read under {drill}", errno.EIO, lambda: handle.pread(BLOCK, 11 * BLOCK))
        equal(bytes(handle.pread(10 * BLOCK, 0)), content[: 10 * BLOCK], f"the sectors in front of {drill}")
        said = world.vsl("drill", "single", drill, "12", fails=True).text
        check(f"{drill} 10+3 is on already" in said and f"vsl drill single undo {drill}" in said, said)
        equal(field(world, device, "unreadable"), "11", "sectors that were asked for and could not be read")
        world.vsl("drill", "single", "undo", drill)
        equal(bytes(handle.pread(len(content), 0)), content, f"what was read after {drill}")
        equal(field(world, device, "unreadable"), "", "sectors that could not be read, once they could")

    # A die that answers late makes reads of it late, and flushes.
    world.vsl("drill", "single", "stall-die", 0, "--ms", 200)
    for what, request in [("a read", lambda: handle.pread(BLOCK, 20 * BLOCK)), ("a flush", lambda: (handle.pwrite(content, 0), handle.flush()))]:
        begin = time.monotonic()
        request()
        took = time.monotonic() - begin
        check(took >= 0.2, f"{what} of a die that answers 200 ms late took {took:.3f} s")
    world.vsl("drill", "single", "undo", "stall-die")
    # Without parity a dead die means that nothing can be read.
    world.vsl("drill", "single", "rot", "40")
    world.vsl("drill", "single", "kill-die", 0)
    refused("a read of a dead die", errno.EIO, lambda: handle.pread(BLOCK, 50 * BLOCK))
    said = world.vsl("drill", "single", "undo", "all").out
    equal(said, "single: ended: rot 40+1, kill-die 0\n", "what ended")
    equal(bytes(handle.pread(len(content), 0)), content, "what was read in the end")
    events = [line.split()[1:3] for line in world.vsl("events", "single").out.splitlines()]
    check(["drill-begins", "stall-die"] in events and ["drill-ends", "stall-die"] in events, f"events: {events}")

    for wrong, words in [
        (["rot", SIZE // BLOCK], "expected sectors below"),
        (["kill-die", 1], "it has one die"),
        (["overheat"], "it has no temperature"),
        (["fill-reserve"], "no reserve of spare blocks"),
        (["undo", "fire"], "no drill is called 'fire'"),
        (["undo", "rot"], "rot is not on"),
        (["power-on"], "is not cut"),
    ]:
        said = world.vsl("drill", "single", *wrong, fails=True).text
        check(words in said, f"{wrong}: {said}")
    said = world.vsl("drill", "nobody", "list", fails=True).text
    check("nobody is not attached" in said, said)
