"""Arrays of files on the real service: RAID 0, RAID 1 and a concatenation under fio verify and stamped writes, a member that is detached by force under load and comes back, another that takes its place, killed services, restarts, and what is refused."""

import json

from harness import MIB, Device, World, check, equal
from harness.arrays import array, create, listed, shown, status
from harness.fio import background_writes, fio
from harness.libnbd import connect
from harness.servers import kill
from harness.stamps import BLOCK, Writer

OURS = True
SIZE = 64 * MIB


def run(world: World) -> None:
    world.servers.up()
    for name in ("a", "b", "c", "d", "e"):
        world.device(SIZE, name)
    refusals(world)
    # Both halves of a stripe that a write lies on are there, or none, however often the service is killed.
    for level, members in (("raid0", ("a", "b")), ("concat", ("a", "b"))):
        create(world, "wide", level, *members)
        holes(world, "wide")
        killed(world, array(world, "wide"), rounds=3)
        fio_verifies(world, "wide")
        world.vsl("array", "delete", "wide", "--yes")
    repairs(world)
    create(world, "safe", "raid1", "c", "d")
    holes(world, "safe")
    killed(world, array(world, "safe"), rounds=3)
    loses_a_member(world)
    restarts(world)
    # What the mirror holds, each of its members does.
    content = bytes(connect(array(world, "safe")).pread(16 * MIB, 0))
    world.vsl("array", "delete", "safe", "--yes")
    for name in ("c", "e"):
        found = bytes(connect(array(world, name)).pread(16 * MIB, 0))
        check(found == content, f"{name} does not hold what the mirror did")


def refusals(world: World) -> None:
    """What cannot be an array is refused with the reason, and nothing has changed."""
    said = world.vsl("array", "create", "x", "--level", "raid1", "a", fails=True).text
    check("RAID 1 takes 2 to 3" in said, said)
    said = world.vsl("array", "create", "x", "--level", "raid1", "a", "b", "c", "d", fails=True).text
    check("RAID 1 takes 2 to 3" in said, said)
    said = world.vsl("array", "create", "x", "--level", "raid0", "a", "a", fails=True).text
    check("a was named twice" in said, said)
    said = world.vsl("array", "create", "x", "--level", "raid0", "a", "nowhere", fails=True).text
    check("no attached device is called 'nowhere'" in said, said)
    said = world.vsl("array", "create", "x", "--level", "raid0", "--stripe", "65537", "a", "b", fails=True).text
    check("expected a power of two" in said, said)
    said = world.vsl("array", "create", "x", "--level", "raid1", "--stripe", "64K", "a", "b", fails=True).text
    check("has no stripe" in said or "has none" in said, said)
    world.vsl("create", world.dir / "small.vsl", "--size", SIZE, "--sector-size", 512, "--yes")
    world.vsl("attach", world.dir / "small.vsl", "--name", "small")
    said = world.vsl("array", "create", "x", "--level", "raid1", "a", "small", fails=True).text
    check("small has sectors of 512 bytes" in said, said)
    handle = connect(array(world, "a"))
    said = world.vsl("array", "create", "x", "--level", "raid1", "a", "b", fails=True).text
    check("client(s) connected" in said, said)
    handle.pwrite(bytes(range(256)) * 16, 0)
    handle.flush()
    handle.shutdown()
    world.wait(lambda: not shown(world, "a").get("clients"), "the client to be gone")
    said = world.vsl("array", "create", "x", "--level", "raid1", "a", "b", fails=True).text
    check("a: holds data" in said and "--force" in said, said)
    equal(listed(world), [], "arrays after refusals")
    equal(bytes(connect(array(world, "a")).pread(4096, 0)), bytes(range(256)) * 16, "what a holds after refusals")
    world.wait(lambda: not shown(world, "a").get("clients"), "the client to be gone")
    create(world, "first", "raid0", "a", "b", force=True)
    for command in (("array", "create", "x", "--level", "raid1", "b", "c"), ("detach", "a"), ("resize", "a", 2 * SIZE),
                    ("snapshot", "create", "a", "one")):
        said = world.vsl(*command, fails=True).text
        check("member of the array first" in said, said)
    said = world.vsl("array", "create", "x", "--level", "raid1", "first", "c", fails=True).text
    check("is an array" in said, said)
    said = world.vsl("drill", "first", "power-cut", fails=True).text
    check("is an array" in said and "a, b" in said, said)
    world.vsl("array", "delete", "first", "--yes")
    equal(listed(world), [], "arrays after a delete")


def holes(world: World, name: str) -> None:
    """Foreign clients learn where an array holds nothing, and copy the rest."""
    device = array(world, name)

    def data() -> list[tuple[int, int]]:
        told = json.loads(world.run("nbdinfo", "--map", "--json", device.uri).out)
        return [(run["offset"], run["length"]) for run in told if run["type"] == 0]

    written = bytes(range(1, 129)) * (MIB // 128)
    handle = connect(device)
    handle.trim(device.size, 0)
    world.wait(lambda: data() == [], f"{name} to hold nothing")
    handle.pwrite(written, 20 * MIB)
    world.wait(lambda: data() == [(20 * MIB, MIB)], f"{name} to tell what it holds")
    handle.pwrite(written[:4096], 40 * MIB + 4096)
    check(40 * MIB in range(*span(data()[-1])), f"{name} told a hole where something was written")
    world.run("nbdcopy", device.uri, world.dir / "copy.img")
    content = (world.dir / "copy.img").read_bytes()
    check(content[20 * MIB:21 * MIB] == written and content.count(0) == device.size - MIB - 4096, f"the copy of {name} is not what it holds")
    handle.trim(21 * MIB, 20 * MIB)
    world.wait(lambda: data() == [], f"{name} to hold nothing again")
    handle.shutdown()
    world.wait(lambda: not shown(world, name).get("clients"), "the clients to be gone")


def span(run: tuple[int, int]) -> tuple[int, int]:
    return run[0], run[0] + run[1]


def killed(world: World, device: Device, rounds: int) -> None:
    """Stamped writes, killed services."""
    untorn = status(world, device.name)["max_request_bytes"]
    writer = Writer(device.size // 2 // BLOCK, 7, untorn // BLOCK)
    for number in range(rounds):
        writer.run(lambda: connect(device), 24, 1.0 + number / 2, lambda: kill(device))
        world.servers.revive(device)
        writer.verify(connect(device))
    check(writer.flushes > 0, "no flush was ever answered: nothing was verified")


def fio_verifies(world: World, name: str) -> None:
    """fio writes requests that lie over stripes' edges, and finds them all."""
    fio(world, array(world, name), "--rw=randwrite", "--bsrange=4k-60k", "--blockalign=4k", "--size=24M", "--iodepth=8",
        "--verify=crc32c", "--do_verify=1")


def repairs(world: World) -> None:
    """What one copy cannot read the other one answers and writes back, so that it can be read there again."""
    for name in ("f", "g"):
        world.vsl("create", world.dir / f"{name}.vsl", "--size", SIZE, "--drills", "--yes")
        world.vsl("attach", world.dir / f"{name}.vsl", "--name", name)
    create(world, "healing", "raid1", "f", "g")
    handle = connect(array(world, "healing"))
    content = bytes(number % 251 for number in range(MIB))
    handle.pwrite(content, 8 * MIB)
    handle.flush()
    world.vsl("drill", "g", "rot", f"{8 * MIB // BLOCK + 16}+24")
    # Copies take turns.
    for _ in range(8):
        check(bytes(handle.pread(MIB, 8 * MIB)) == content, "a read gave what was not written")
    world.wait(lambda: status(world, "healing")["repaired_bytes"] > 0, "the copy to be repaired")
    world.wait(lambda: "another copy" in world.vsl("events", "healing").out, "the repair to be an event")
    handle.shutdown()
    world.wait(lambda: not shown(world, "healing").get("clients"), "the client to be gone")
    equal(status(world, "healing")["state"], "healthy", "state of a mirror after a repair")
    world.vsl("array", "delete", "healing", "--yes")
    check(bytes(connect(array(world, "g")).pread(MIB, 8 * MIB)) == content, "the copy does not hold what it was given")
    world.wait(lambda: not shown(world, "g").get("clients"), "the client to be gone")


def loses_a_member(world: World) -> None:
    """A member is detached by force under load, comes back and gets what it missed; another takes its place."""
    device = array(world, "safe")
    # What the killed services left to copy, and their marks, are not this member's.
    world.wait(lambda: status(world, "safe")["dirty_regions"] == 0, "the mirror to be in step", 120)
    before = status(world, "safe")
    writes = background_writes(world, device, range(device.size // 2, device.size), fsync=100)
    world.wait(lambda: status(world, "safe")["dirty_regions"] > 0, "writes to arrive")
    world.vsl("detach", "d", "--force")
    world.wait(lambda: status(world, "safe")["state"] == "degraded", "the mirror to be degraded")
    equal([member["state"] for member in status(world, "safe")["members"]], ["in-sync", "missing"], "members")
    check(writes.poll() is None, "the load ended when a member went")
    world.vsl("attach", world.dir / "d.vsl", "--name", "d")
    world.wait(lambda: status(world, "safe")["state"] == "healthy", "the member to be in step", 120)
    copied = status(world, "safe")["copied_bytes"] - before["copied_bytes"]
    check(0 < copied <= device.size // 2 + device.size // before["regions"], f"{copied} bytes copied: more than was written")
    writes.kill()
    writes.wait()
    world.vsl("detach", "d", "--force")
    world.wait(lambda: status(world, "safe")["state"] == "degraded", "the mirror to be degraded")
    said = world.vsl("array", "replace", "safe", "c", "--with", "e", fails=True).text
    check("is in use" in said, said)
    world.vsl("array", "replace", "safe", "d", "--with", "e")
    world.wait(lambda: status(world, "safe")["state"] == "healthy", "the new member to have everything", 120)
    equal([member["name"] for member in status(world, "safe")["members"]], ["c", "e"], "members")


def restarts(world: World) -> None:
    """The service assembles what it remembers, and nothing is to be copied after a stop in good order."""
    connect(array(world, "safe")).pwrite(b"\x77" * 8192, 5 * MIB)
    world.vsl("down", "--force")
    world.servers.up()
    world.wait(lambda: status(world, "safe")["state"] == "healthy", "the mirror to be assembled")
    equal(status(world, "safe")["copied_bytes"], 0, "bytes copied after a stop in good order")
    equal(bytes(connect(array(world, "safe")).pread(8192, 5 * MIB)), b"\x77" * 8192, "what was written before")
