"""Requests that waited long are in the log, with what they waited for: a store that is slow to read and to sync, and nothing where nothing is slow."""

import os
import re
import time

import nbd

from harness import MIB, World, check, equal, wire
from harness.libnbd import connect
from harness.memory import agrees, resident
from harness.servers import Device

OURS = True
BLOCK = 4096
TOLD = re.compile(r"requests waited long: (.*?) device=(\S+) requests=(\d+) longest_ms=(\d+) client=(.*?) command=(.*?) offset=(\d+) len=(\d+)(.*)")


def run(world: World) -> None:
    world.servers.up()
    path = world.dir / "disk.vsl"
    world.vsl("create", path, "--size", 64 * MIB, "--drills")
    world.vsl("attach", path)
    device = Device("disk", path, 64 * MIB, world.servers.uri("disk"))
    h = connect(device)
    before_all = resident(device.server_pid())
    for number in range(64):
        h.pwrite(bytes([number]) * BLOCK, number * BLOCK)
    h.flush()
    world.vsl("drill", "disk", "stall-die", 0, "--ms", 300)
    before = len(told(world))
    equal(bytes(h.pread(BLOCK, 7 * BLOCK)), bytes([7]) * BLOCK, "a slow read")
    wait = last(world, before)
    check(wait.group(1).endswith("the store took so long to read it") and wait.group(6) == "Read", wait.group(0))
    equal((int(wait.group(7)), int(wait.group(8))), (7 * BLOCK, BLOCK), "what was read")
    check(int(wait.group(4)) >= 300 and "stall-die 0" in wait.group(9), wait.group(0))

    before = len(told(world))
    h.pwrite(b"x" * BLOCK, 0)
    h.flush()
    wait = last(world, before)
    check("make it durable" in wait.group(1) and wait.group(6) == "Flush", wait.group(0))

    # Many within a second are a line, and nothing is one that is not slow.
    before = len(told(world))
    for number in range(1, 8):
        h.aio_pread(nbd.Buffer(BLOCK), number * BLOCK)
    while h.aio_in_flight() > 0:
        h.poll(-1)
    world.wait(lambda: sum(int(one.group(3)) for one in told(world)[before:]) >= 7, "all of them to be told of")
    check(len(told(world)) - before <= 3, f"{[one.group(0) for one in told(world)[before:]]}")
    equal(world.vsl("status", "disk", "--field", "health").out.strip(), "healthy", "health of a slow device")
    agrees(world, device, before_all)
    world.vsl("drill", "disk", "undo", "stall-die")

    # A client that announces data and sends them late is not a slow store, however large they are.
    for length in (BLOCK, 4 * MIB):
        before = len(told(world))
        with wire.connect(device.socket, b"disk") as late:
            late.sendall(wire.request(wire.WRITE, 1, 0, length) + bytes(length // 2))
            time.sleep(0.3)
            late.sendall(bytes(length - length // 2))
            equal(wire.answer(late), 0, "the answer to a write whose data came late")
        wait = last(world, before)
        check("the client sent the data late" in wait.group(1) and wait.group(6).startswith("Write"), wait.group(0))
        check(str(os.getpid()) in wait.group(5), f"the client is not named: {wait.group(0)}")


def told(world: World) -> list[re.Match]:
    """What the log tells."""
    text = (world.dir / "state/openvsl.log").read_text()
    return [match for match in map(TOLD.search, text.splitlines()) if match]


def last(world: World, before: int) -> re.Match:
    """The next line of the log after so many."""
    world.wait(lambda: len(told(world)) > before, "the log to tell of it")
    return told(world)[-1]
