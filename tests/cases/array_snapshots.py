"""Snapshots of arrays: one moment on all members under a client that writes to one after the other, also when the service is killed while they are made; across growth and a copy that was away; by schedule; and of an array that is full of yesterday."""

import json
import random
import threading
import time

import nbd

from harness import MIB, World, check, equal
from harness.arrays import array, create, shown, status
from harness.libnbd import connect
from harness.servers import Device, kill
from harness.stamps import BLOCK

OURS = True
SIZE = 48 * MIB
STRIPE = 64 << 10


def run(world: World) -> None:
    world.servers.up()
    for name in ("a", "b", "c"):
        world.device(SIZE, name)
    create(world, "wide", "raid0", "a", "b")
    one_moment(world)
    killed(world)
    refusals(world)
    world.vsl("snapshot", "schedule", "wide", "--hourly", 2)
    check(any(name.startswith("hourly-") for name in listed(world, "wide")), "the schedule made none")
    world.vsl("snapshot", "schedule", "wide", "--off")
    clear(world, "wide")
    grows(world)
    world.vsl("array", "delete", "wide", "--yes")
    copies(world)
    full(world)


def listed(world: World, name: str) -> list[str]:
    """The names of snapshots."""
    return [one["name"] for one in json.loads(world.vsl("--json", "snapshot", "list", name).out)["snapshots"]]


def clear(world: World, name: str) -> None:
    """Deletes all snapshots; members keep none for themselves."""
    for snapshot in listed(world, name):
        world.vsl("snapshot", "delete", name, snapshot)
    for member in status(world, name)["members"]:
        equal(listed(world, member["name"]), [], f"snapshots of {member['name']}")


def of(world: World, device: Device, snapshot: str) -> nbd.NBD:
    """A snapshot, as clients see it."""
    return connect(Device(f"{device.name}@{snapshot}", device.path, device.size, device.uri.replace(f"/{device.name}?", f"/{device.name}@{snapshot}?")))


class Counter:
    """A client that counts up on one member and then on the next, each write only when the one before it was answered."""

    def __init__(self, device: Device) -> None:
        self.handle = connect(device)
        self.stop = False
        self.answered = 0
        self.thread = threading.Thread(target=self.count)
        self.thread.start()

    def count(self) -> None:
        """Until it is stopped, or the service goes."""
        number = 0
        try:
            while not self.stop:
                number += 1
                for offset in (0, STRIPE):
                    self.handle.pwrite(number.to_bytes(8, "little") * (BLOCK // 8), offset)
                self.answered = number
        except nbd.Error:
            pass

    def end(self) -> None:
        """Stops it."""
        self.stop = True
        self.thread.join()


def counted(handle: nbd.NBD) -> tuple[int, int]:
    """How far a snapshot's client was, on each member."""
    found = [bytes(handle.pread(BLOCK, offset)) for offset in (0, STRIPE)]
    check(all(data == data[:8] * (BLOCK // 8) for data in found), "a block is torn")
    return tuple(int.from_bytes(data[:8], "little") for data in found)


def one_moment(world: World) -> None:
    """No snapshot has a later write without an earlier one, and each has what was answered before it was asked for."""
    device = array(world, "wide")
    counter = Counter(device)
    seen = {}
    for number in range(12):
        before = counter.answered
        world.vsl("snapshot", "create", "wide", f"s{number}")
        seen[f"s{number}"] = (before, counter.answered)
    counter.end()
    equal(listed(world, "wide"), list(seen), "the snapshots")
    for name, (before, after) in seen.items():
        first, second = counted(of(world, device, name))
        check(second <= first <= second + 1, f"{name} shows {first} on one member and {second} on the other")
        check(before <= second <= after + 1, f"{name} shows {second}, asked for at {before}, made by {after}")
    check(seen["s11"][1] > seen["s0"][0], "nothing was written meanwhile")
    print(f"figure: {len(seen)} snapshots of an array while {counter.answered} pairs of ordered writes went to two members, none out of order")
    world.run("nbdinfo", "--is", "read-only", device.uri.replace("/wide?", "/wide@s0?"))
    for member in ("a", "b"):
        equal(listed(world, member), list(seen), f"snapshots of {member}")
    said = world.vsl("snapshot", "create", "a", "own", fails=True).text
    check("member of the array wide" in said, said)
    # They are there after a restart, with the names and holds that they got.
    world.vsl("snapshot", "rename", "wide", "s0", "first")
    world.vsl("snapshot", "hold", "wide", "first")
    kill(device)
    world.servers.revive(device)
    names = ["first", *list(seen)[1:]]
    equal(listed(world, "wide"), names, "the snapshots after a kill")
    check("is held" in world.vsl("snapshot", "delete", "wide", "first", fails=True).text, "a held one is deleted")
    world.vsl("snapshot", "release", "wide", "first")
    clear(world, "wide")


def killed(world: World) -> None:
    """The service is killed while a snapshot is made: it is there as one moment or not at all, and no member keeps a part."""
    dice = random.Random(5)
    there = 0
    for number in range(8):
        device = array(world, "wide")
        counter = Counter(device)
        time.sleep(0.1)
        asked = world.start(world.vsl_path, "snapshot", "create", "wide", f"k{number}", log="asked.log")
        time.sleep(dice.random() * 0.04)
        kill(device)
        counter.end()
        answered = asked.wait(timeout=30) == 0
        world.servers.revive(device)
        names = listed(world, "wide")
        check(not answered or f"k{number}" in names, f"k{number} was answered and is gone")
        if f"k{number}" in names:
            there += 1
            first, second = counted(of(world, array(world, "wide"), f"k{number}"))
            check(second <= first <= second + 1, f"k{number} shows {first} on one member and {second} on the other")
        world.wait(lambda: all(listed(world, member) == listed(world, "wide") for member in ("a", "b")), "members to have what the array has")
    print(f"figure: killed while 8 snapshots were made: {there} were there afterwards")
    clear(world, "wide")


def refusals(world: World) -> None:
    """What an array has none of is refused with the reason."""
    world.vsl("snapshot", "create", "wide", "one")
    for command, why in (
        (("snapshot", "rollback", "wide", "one", "--yes"), "an array does not roll back"),
        (("snapshot", "diff", "wide", "one"), "is an array"),
        (("clone", "create", "wide", "one", "copy"), "is an array"),
        (("snapshot", "create", "wide", "one"), "already"),
        (("snapshot", "create", "wide", "a b"), "no name for a snapshot"),
        (("snapshot", "delete", "wide", "two"), "no snapshot"),
    ):
        said = world.vsl(*command, fails=True).text
        check(why in said, said)
    equal(listed(world, "wide"), ["one"], "the snapshots after refusals")
    clear(world, "wide")


def grows(world: World) -> None:
    """A snapshot shows what the array held when its stripes lay on two members, after they were laid out over three."""
    handle = connect(array(world, "wide"))
    old = handle.get_size()
    content = random.Random(3).randbytes(8 * MIB)
    handle.pwrite(content[:4 * MIB], 0)
    handle.pwrite(content[4 * MIB:], old - 4 * MIB)
    world.vsl("snapshot", "create", "wide", "two")
    world.vsl("array", "add", "wide", "c", "--force")
    between = world.vsl("snapshot", "create", "wide", "between", fails=None)
    if between.code:
        check("laid out anew" in between.text, between.text)
    else:
        world.vsl("snapshot", "delete", "wide", "between")
    world.wait(lambda: status(world, "wide")["state"] == "healthy", "the stripes to be laid out", 60)
    device = array(world, "wide")
    check(device.size > old, "the array did not grow")
    handle = connect(device)
    handle.pwrite(bytes(8 * MIB), 0)
    handle.pwrite(b"\x11" * MIB, device.size - MIB)
    world.vsl("snapshot", "create", "wide", "three")
    for _ in range(2):
        two = of(world, device, "two")
        check(bytes(two.pread(4 * MIB, 0)) + bytes(two.pread(4 * MIB, old - 4 * MIB)) == content, "the snapshot of two members shows something else")
        equal(bytes(two.pread(MIB, device.size - MIB)), bytes(MIB), "what came later, in an old snapshot")
        equal(bytes(of(world, device, "three").pread(MIB, device.size - MIB)), b"\x11" * MIB, "the end in the new snapshot")
        kill(device)
        world.servers.revive(device)
        device = array(world, "wide")
    clear(world, "wide")


def copies(world: World) -> None:
    """A mirror's snapshot is on the copies that had everything; one that was away brings back what only it has."""
    create(world, "safe", "raid1", "a", "b")
    device = array(world, "safe")
    handle = connect(device)
    handle.pwrite(b"\x01" * MIB, 0)
    world.vsl("snapshot", "create", "safe", "both")
    world.vsl("detach", "b", "--force")
    world.wait(lambda: status(world, "safe")["state"] == "degraded", "the mirror to be degraded")
    handle.pwrite(b"\x02" * MIB, 0)
    world.vsl("snapshot", "create", "safe", "alone")
    world.vsl("snapshot", "delete", "safe", "both")
    equal(listed(world, "safe"), ["alone"], "snapshots without b")
    world.vsl("attach", "b.vsl", "--name", "b")
    world.wait(lambda: status(world, "safe")["state"] == "healthy", "the copy to be in step", 60)
    equal(listed(world, "safe"), ["both", "alone"], "b brought back what was deleted without it")
    equal(bytes(of(world, device, "both").pread(MIB, 0)), b"\x01" * MIB, "what only b has")
    for _ in range(4):
        equal(bytes(of(world, device, "alone").pread(MIB, 0)), b"\x02" * MIB, "what only a has")
    handle.shutdown()
    clear(world, "safe")
    world.vsl("array", "delete", "safe", "--yes", "--force")


def full(world: World) -> None:
    """An array that is full of yesterday refuses writes, loses nothing and no member, and goes on when a snapshot is deleted."""
    for level in ("raid0", "raid1"):
        create(world, "small", level, "a", "b")
        device = array(world, "small")
        handle = connect(device)
        whole = device.size // MIB - 1
        yesterday = [number.to_bytes(4, "little") * (MIB // 4) for number in range(whole)]
        for number, data in enumerate(yesterday):
            handle.pwrite(data, number * MIB)
        # What was deleted before becomes free bit by bit.
        world.wait(lambda: world.vsl("snapshot", "create", "small", "yesterday", fails=None).code == 0, "room for a snapshot")
        refused = 0
        for turn in range(whole):
            try:
                handle.pwrite(bytes([turn % 251]) * (MIB - STRIPE) + bytes(STRIPE), turn * MIB)
            except nbd.Error as error:
                check(error.errnum == 28, f"{error}")
                refused += 1
        check(refused > 0, "it never was full")
        equal(status(world, "small")["state"], "healthy", f"a full {level}")
        shows = of(world, device, "yesterday")
        for number, data in enumerate(yesterday):
            check(bytes(shows.pread(MIB, number * MIB)) == data, f"{level}: MiB {number} of the snapshot is not what it was")
        world.vsl("snapshot", "delete", "small", "yesterday")
        world.wait(lambda: writes(handle, whole), "room to be free again")
        for one in (handle, shows):
            one.shutdown()
        world.wait(lambda: not shown(world, "small").get("clients"), "the clients to be gone")
        world.vsl("array", "delete", "small", "--yes")


def writes(handle: nbd.NBD, whole: int) -> bool:
    """Whether everything can be overwritten."""
    try:
        for number in range(whole):
            handle.pwrite(b"\x66" * MIB, number * MIB)
    except nbd.Error:
        return False
    return True
