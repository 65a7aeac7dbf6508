"""Clones over NBD with nbdcopy, libnbd and ext4: a hundred of one base are written, each by itself, and none shows in another; the base and the device stay what they were, through a detach and killed services. One is promoted, the others are deleted."""

import json

from harness import KIB, MIB, World, check, equal
from harness.libnbd import connect
from harness.servers import kill

OURS = True
SIZE = 32 * MIB
COUNT = 100
CHUNK = 16 * KIB


def run(world: World) -> None:
    device = world.device(4 * SIZE)
    image, copy = world.dir / "base.img", world.dir / "copy.img"
    # A file system with a file that every clone has, and parts that hold nothing.
    tree = world.dir / "tree"
    tree.mkdir()
    (tree / "shared").write_bytes(bytes(range(256)) * (4 * KIB))
    world.run("truncate", "--size", 4 * SIZE, image)
    world.run("mke2fs", "-q", "-t", "ext4", "-d", tree, image, SIZE // KIB)
    world.run("nbdcopy", image, device.uri)
    world.vsl("snapshot", "create", device.name, "golden")
    uris = {f"ci-{number}": uri_of(device.uri, device.name, f"ci-{number}") for number in range(COUNT)}
    for name in uris:
        world.vsl("clone", "create", device.name, "golden", name)
    listed = json.loads(world.vsl("--json", "clone", "list", device.name).out)["clones"]
    equal([one["own_bytes"] for one in listed], [0] * COUNT, "bytes that clones hold before they are written")
    check("already" in world.vsl("clone", "create", device.name, "golden", "ci-0", fails=True).text, "a name twice")
    check("stands on" in world.vsl("snapshot", "delete", device.name, "golden", fails=True).text, "the base is gone")
    world.run("nbdinfo", "--is", "read-only", uri_of(device.uri, device.name, "golden"))
    world.run("nbdinfo", "--can", "write", uris["ci-0"])
    base = image.read_bytes()
    for number, uri in enumerate(uris.values()):
        handle = connect(uri)
        handle.pwrite(content(number), place(number))
        handle.trim(CHUNK, 0)
        handle.flush()
        handle.shutdown()
    verify(world, uris, base)
    world.run("nbdcopy", device.uri, copy)
    check(copy.read_bytes() == base, "the device does not hold what it did")
    # A file system of its own: what a program writes into one clone is in no other.
    world.run("nbdcopy", uri_of(device.uri, device.name, "golden"), copy)
    check(copy.read_bytes() == base, "the base does not show what it did")
    world.vsl("clone", "create", device.name, "golden", "files")
    files = uri_of(device.uri, device.name, "files")
    (world.dir / "own").write_bytes(b"of this clone only\n" * KIB)
    world.run("nbdcopy", files, copy)
    world.run("debugfs", "-w", "-R", f"write {world.dir / 'own'} own", copy)
    world.run("nbdcopy", "--flush", copy, files)
    # What a killed service answered is there, and so are clones after a detach in good order.
    kill(device)
    world.servers.revive(device)
    verify(world, uris, base)
    world.vsl("detach", device.name)
    world.vsl("attach", device.path, "--name", device.name)
    verify(world, uris, base)
    world.run("nbdcopy", files, copy)
    world.run("e2fsck", "-fn", copy)
    said = world.run("debugfs", "-R", "cat own", copy)
    check("of this clone only" in said.out, "a file that was written into a clone is not there")
    # The device becomes one of them, and the base goes with the last of the others.
    check("no terminal" in world.vsl("clone", "promote", device.name, "files", fails=True).text, "nobody was asked")
    world.vsl("clone", "promote", device.name, "files", "--yes")
    promoted = copy.read_bytes()
    world.run("nbdcopy", device.uri, copy)
    check(copy.read_bytes() == promoted, "the device does not hold what the clone did")
    kill(device)
    world.servers.revive(device)
    world.run("nbdcopy", device.uri, copy)
    check(copy.read_bytes() == promoted, "the device does not hold what the clone did, after the service was killed")
    verify(world, uris, base)
    for name in uris:
        world.vsl("clone", "delete", device.name, name)
    world.run("nbdinfo", "--size", uris["ci-0"], fails=True)
    world.vsl("snapshot", "delete", device.name, "golden")
    for field in ("clones", "snapshots"):
        equal(world.vsl("status", device.name, "--field", field).out.strip(), "0", f"{field} at the end")
    world.run("nbdcopy", device.uri, copy)
    check(copy.read_bytes() == promoted, "the device changed with its clones")


def uri_of(uri: str, device: str, name: str) -> str:
    """The address of a snapshot or a clone."""
    found = uri.replace(f"/{device}", f"/{device}@{name}")
    check(found != uri, uri)
    return found


def content(number: int) -> bytes:
    """What a clone writes."""
    return bytes([number + 1, 255 - number]) * (CHUNK // 2)


def place(number: int) -> int:
    """Where, over what its base holds and beside it."""
    return (1 + number % 7) * MIB + number * CHUNK


def verify(world: World, uris: dict[str, str], base: bytes) -> None:
    """Each clone holds what it wrote, zeros where it trimmed, and otherwise what its base does."""
    for number, uri in enumerate(uris.values()):
        handle = connect(uri)
        for at in (place(number), place((number + 1) % COUNT), 0, MIB, SIZE):
            found = handle.pread(CHUNK, at)
            expected = base[at : at + CHUNK]
            if at == 0:
                expected = bytes(CHUNK)
            elif at == place(number):
                expected = content(number)
            check(found == expected, f"clone {number} shows something else at {at}")
        handle.shutdown()
    world.run("nbdcopy", "--", next(iter(uris.values())), world.dir / "first.img")
    found = (world.dir / "first.img").read_bytes()
    expected = bytearray(base)
    expected[:CHUNK] = bytes(CHUNK)
    expected[place(0) : place(0) + CHUNK] = content(0)
    check(found == bytes(expected), "the first clone is not its base with what it wrote")
