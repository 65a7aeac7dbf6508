"""The power is cut by a drill in the middle of fio: connections end, what was flushed is there when it comes back, no write is torn."""

import errno
import json
import random

import nbd

from harness import MIB, Device, World, check, equal
from harness.fio import background_writes
from harness.libnbd import connect, refused
from harness.stamps import BLOCK, Writer

OURS = True
SIZE = 256 * MIB
ROUNDS = 4


def run(world: World) -> None:
    world.servers.up()
    world.vsl("create", world.dir / "plain.vsl", "--size", SIZE)
    world.vsl("attach", "plain.vsl")
    said = world.vsl("drill", "plain", "power-cut", fails=True)
    check("plain is not marked" in said.text or "not marked for drills" in said.text, said.text)
    check("vsl config plain drills on" in said.text, said.text)

    world.vsl("create", world.dir / "disk.vsl", "--size", SIZE, "--drills")
    check("a drill device" in world.vsl("attach", "disk.vsl").text, "an attach does not say that it is a drill device")
    device = Device("disk", world.dir / "disk.vsl", SIZE, world.servers.uri("disk"))
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    writer = Writer(SIZE // 2 // BLOCK, seed)
    for number in range(ROUNDS):
        fio = background_writes(world, device, range(SIZE // 2, SIZE), fsync=50)
        issued = writer.run(lambda: connect(device), 24, dice.uniform(0.5, 1.0), lambda: cut(world, dice))
        drills = world.vsl("drill", "disk", "list").out
        equal(drills, "power-cut\n", "the list of drills without power")
        print(f"round {number}: cut after {issued} requests, {writer.flushes} flushes so far", flush=True)
        fio.wait(timeout=30)
        check(fio.returncode != 0, "fio did not notice that the power was cut")
        equal(world.servers.state(device), "powered-off", "state")
        check(no_export(device), "the export is still offered without power")
        said = world.vsl("scrub", "disk", fails=True).text
        check("a drill has cut the power of disk" in said and "vsl drill disk power-on" in said, said)
        world.vsl("drill", "disk", *(["power-on"] if dice.random() < 0.5 else ["undo", "power-cut"]))
        equal(world.servers.state(device), "attached", "state")
        writer.verify(connect(device))
    check(writer.flushes > 0, "no flush was ever answered: nothing was verified")
    events = [event["event"] for event in json.loads(world.vsl("--json", "events", "disk").out)["events"]]
    equal((events.count("power-cut"), events.count("power-on"), events[0]), (ROUNDS, ROUNDS, "attached"), "events")
    print(f"figure: power cuts by command under fio: {ROUNDS}, lost or torn: 0")

    # A cut that is called off does not come.
    world.vsl("drill", "disk", "power-cut", "--at-write", 2)
    equal(world.vsl("drill", "disk", "list").out, "power-cut at write 2\n", "the list of drills")
    world.vsl("drill", "disk", "undo", "all")
    handle = connect(device)
    for _ in range(5):
        handle.pwrite(bytes(BLOCK), 0)
    # And one that is not comes with that very write, which is not answered.
    world.vsl("drill", "disk", "power-cut", "--at-write", 2, "--unsynced", "drop")
    handle.pwrite(b"1" * BLOCK, 0, nbd.CMD_FLAG_FUA)
    try:
        handle.pwrite(b"2" * BLOCK, 0)
        check(False, "the write with which the power goes was answered")
    except nbd.Error:
        pass
    world.wait(lambda: world.servers.state(device) == "powered-off", "the power to go")
    # The service stops and starts as with any device that crashed.
    world.vsl("down")
    world.servers.revive(device)
    equal(bytes(connect(device).pread(BLOCK, 0)), b"1" * BLOCK, "what was written before the cut")
    refused("a read beyond the end", errno.EINVAL, lambda: connect(device, strict=False).pread(BLOCK, SIZE))


def cut(world: World, dice: random.Random) -> None:
    """Now, or in the middle of one of the next writes of the medium."""
    if dice.random() < 0.5:
        world.vsl("drill", "disk", "power-cut", "--unsynced", dice.choice(["random", "drop", "torn"]))
        return
    world.vsl("drill", "disk", "power-cut", "--at-program", dice.randint(1, 40), "--seed", dice.randrange(1 << 31))
    world.wait(lambda: "power-cut\n" in world.vsl("drill", "disk", "list").out, "the power to go under fio")


def no_export(device: Device) -> bool:
    """Whether a client is refused."""
    try:
        connect(device)
        return False
    except nbd.Error:
        return True
