"""Cached volumes on the real service: files and a device behind one cache, in each mode under fio verify, stamped writes and killed services; warm after a restart, told when what stands behind was changed, flushed, and what is refused."""

import json
import os

from harness import MIB, World, check, equal
from harness.caches import create, shown, status, volume
from harness.fio import fio
from harness.libnbd import connect
from harness.servers import kill
from harness.stamps import BLOCK, Writer

OURS = True
SIZE = 96 * MIB


def run(world: World) -> None:
    world.servers.up()
    world.vsl("create", world.dir / "fast.vsl", "--size", 64 * MIB, "--address-space", "1PiB", "--yes")
    world.vsl("attach", world.dir / "fast.vsl", "--name", "fast")
    world.device(SIZE, "slow")
    refusals(world)
    for mode in ("write-around", "write-through", "write-back"):
        behind = world.dir / f"{mode}.img"
        behind.write_bytes(os.urandom(SIZE))
        create(world, mode, behind, mode)
        shows(world, mode, behind.read_bytes())
        fio(world, volume(world, mode), "--rw=randwrite", "--bsrange=4k-60k", "--blockalign=4k", "--size=40M", "--iodepth=16",
            "--verify=crc32c", "--do_verify=1")
        killed(world, mode)
        world.vsl("cache", "flush", mode)
        shows(world, mode, behind.read_bytes())
    # A device behind, on the same cache.
    create(world, "device", "slow", "write-back")
    killed(world, "device")
    warm(world, "write-through")
    estimated(world, "write-through")
    changed(world, world.dir / "write-back.img")
    others(world)
    deleted(world)


def refusals(world: World) -> None:
    """What cannot be is refused with the reason, and nothing has changed."""
    image = world.dir / "odd.img"
    image.write_bytes(bytes(5000))
    used = world.dir / "slow.vsl"
    for behind, cache, words in (
        ("fast", "fast", "cannot be the cache of itself"),
        (world.dir / "nowhere.img", "fast", "No such file"),
        (image, "fast", "no number of sectors"),
        (world.dir, "fast", "s a directory"),
        (used, "fast", "is attached as slow"),
        ("nothing", "fast", "no attached device is called 'nothing'"),
        ("fast", "slow", "larger address space"),
    ):
        said = world.vsl("cache", "create", "x", "--cache", cache, "--behind", behind, fails=True).text
        check(words in said, said)
    image.unlink()
    handle = connect(volume(world, "fast"))
    handle.pwrite(b"x" * 4096, 0)
    handle.shutdown()
    world.wait(lambda: not shown(world, "fast").get("clients"), "the client to be gone")
    said = world.vsl("cache", "create", "x", "--cache", "fast", "--behind", "slow", fails=True).text
    check("belongs to no cached volume" in said, said)
    handle = connect(volume(world, "fast"))
    handle.trim(4096, 0)
    handle.shutdown()
    world.wait(lambda: not shown(world, "fast").get("clients"), "the client to be gone")
    equal(json.loads(world.vsl("--json", "cache", "list").out)["caches"], [], "volumes after refusals")


def killed(world: World, name: str) -> None:
    """Stamped writes, killed services."""
    device = volume(world, name)
    handle = connect(device)
    handle.zero(SIZE // 2, 0)
    handle.flush()
    handle.shutdown()
    writer = Writer(device.size // 2 // BLOCK, 7, shown(world, name)["max_request_bytes"] // BLOCK if name in ("write-back", "device") else 2)
    for number in range(2):
        writer.run(lambda: connect(device), 24, 1.0 + number / 2, lambda: kill(device))
        world.servers.revive(device)
        writer.verify(connect(device))
    check(writer.flushes > 0, "no flush was ever answered: nothing was verified")
    world.wait(lambda: not shown(world, name).get("clients"), "the clients to be gone")


def warm(world: World, name: str) -> None:
    """What was cached is cached after a restart."""
    for _ in range(2):
        connect(volume(world, name)).pread(16 * MIB, 70 * MIB)
    world.vsl("down", "--force")
    world.servers.up()
    world.wait(lambda: status(world, name)["state"] == "healthy", "the volume to be opened")
    connect(volume(world, name)).pread(16 * MIB, 70 * MIB)
    seen = status(world, name)
    equal(seen["dropped_regions"], 0, "regions dropped after a stop in good order")
    check(seen["hit_bytes"] > 14 * MIB, f"little is left in the cache: {seen}")
    world.wait(lambda: not shown(world, name).get("clients"), "the clients to be gone")


def estimated(world: World, name: str) -> None:
    """What larger and smaller caches would do: 36 MiB that are read again and again are too much for a quarter of the cache, not for all of it."""
    handle = connect(volume(world, name))
    for _ in range(60):
        for at in range(0, 36 * MIB, MIB):
            handle.pread(MIB, 60 * MIB + at)
    handle.shutdown()
    found = status(world, name)["estimates"]
    rooms = [room["room_bytes"] for room in found["rooms"]]
    equal([room // rooms[0] for room in rooms], [1, 2, 4, 8, 16, 32], "rooms, in quarters")
    check(48 * MIB < rooms[2] < 128 * MIB, f"the room of a device of 64 MiB and what it has to spare: {rooms[2]}")
    ratios = [room["hit_ratio"] for room in found["rooms"]]
    check(all(0 <= ratio <= 1 for ratio in ratios), f"hit ratios: {ratios}")
    check(ratios[0] < 0.8 and ratios[2] > 0.9, f"36 MiB read again and again with rooms of {rooms}: {ratios}")
    check(abs(ratios[2] - found["hit_ratio"]) < 0.1, f"the volume's own hit ratio {found['hit_ratio']}, estimated as {ratios[2]}")
    said = world.vsl("cache", "status", name).out
    check("with other rooms" in said, said)
    world.wait(lambda: not shown(world, name).get("clients"), "the client to be gone")


def changed(world: World, behind) -> None:
    """What stands behind was changed by somebody else: what is cached of it is no answer, and what is not behind yet is not lost."""
    name = "write-back"
    world.vsl("cache", "flush", name)
    connect(volume(world, name)).pread(MIB, 80 * MIB)
    world.wait(lambda: not shown(world, name).get("clients"), "the client to be gone")
    world.vsl("detach", name)
    with open(behind, "r+b") as file:
        file.seek(80 * MIB)
        file.write(b"changed!" * (MIB // 8))
    world.vsl("cache", "open", name)
    equal(bytes(connect(volume(world, name)).pread(MIB, 80 * MIB)), b"changed!" * (MIB // 8), "what was written behind the cache's back")
    world.wait(lambda: not shown(world, name).get("clients"), "the client to be gone")
    # What is dirty belongs to what stood behind before.
    handle = connect(volume(world, name))
    handle.pwrite(b"\x11" * MIB, 81 * MIB)
    handle.shutdown()
    world.wait(lambda: not shown(world, name).get("clients"), "the client to be gone")
    world.vsl("detach", name)
    os.utime(behind)
    said = world.vsl("cache", "open", name, fails=True).text
    check("was changed from outside" in said and "--unchanged" in said, said)
    with open(behind, "r+b") as file:
        file.truncate(SIZE // 2)
    said = world.vsl("cache", "open", name, "--unchanged", fails=True).text
    check("expected the same store" in said, said)
    with open(behind, "r+b") as file:
        file.truncate(SIZE)
    said = world.vsl("cache", "delete", name, "--yes", fails=True).text
    check("may not be behind yet" in said and "--discard" in said, said)
    world.vsl("cache", "open", name, "--unchanged")
    equal(bytes(connect(volume(world, name)).pread(MIB, 81 * MIB)), b"\x11" * MIB, "what was dirty")
    world.wait(lambda: not shown(world, name).get("clients"), "the client to be gone")


def others(world: World) -> None:
    """Nobody else uses what a volume does, and asks the volume for what it has not."""
    for command in (("detach", "slow"), ("resize", "fast", "128MiB"), ("snapshot", "create", "slow", "one")):
        said = world.vsl(*command, fails=True).text
        check("the volume" in said, said)
    said = world.vsl("snapshot", "create", "device", "one", fails=True).text
    check("is a cached volume" in said, said)
    said = world.vsl("array", "create", "y", "--level", "raid0", "device", "write-back", fails=True).text
    check("cannot be a member" in said, said)
    # Another mode: what is dirty goes behind first.
    connect(volume(world, "write-back")).pwrite(b"\x22" * MIB, 82 * MIB)
    world.wait(lambda: not shown(world, "write-back").get("clients"), "the client to be gone")
    world.vsl("cache", "open", "write-back", "--mode", "write-through")
    equal(status(world, "write-back")["dirty_bytes"], 0, "dirty bytes with write-through")
    with open(world.dir / "write-back.img", "rb") as file:
        file.seek(82 * MIB)
        equal(file.read(MIB), b"\x22" * MIB, "what stands behind with write-through")


def deleted(world: World) -> None:
    """What stands behind holds everything once a volume is deleted."""
    content = {name: bytes(connect(volume(world, name)).pread(16 * MIB, 0)) for name in ("write-back", "device")}
    for name in ("write-back", "device", "write-through", "write-around"):
        world.wait(lambda: not shown(world, name).get("clients"), "the clients to be gone")
        world.vsl("cache", "delete", name, "--yes")
    with open(world.dir / "write-back.img", "rb") as file:
        check(file.read(16 * MIB) == content["write-back"], "the file does not hold what the volume did")
    check(bytes(connect(volume(world, "slow")).pread(16 * MIB, 0)) == content["device"], "the device does not hold what the volume did")
    equal(shown(world, "fast").get("mapped_bytes", shown(world, "fast").get("used_bytes")), 0, "what is left on the cache device")


def shows(world: World, name: str, content: bytes) -> None:
    handle = connect(volume(world, name))
    step = 4 * MIB
    for at in range(0, SIZE, step):
        check(bytes(handle.pread(step, at)) == content[at:at + step], f"{name} does not show what stands behind")
    handle.shutdown()
    world.wait(lambda: not shown(world, name).get("clients"), "the client to be gone")
