"""A copy is not attached beside its original until it has an identity of its own; then both go on, each with what was written to it."""

import os
from pathlib import Path

from harness import MIB, World, check, equal
from harness.libnbd import connect
from harness.servers import Device

OURS = True


def run(world: World) -> None:
    one_file(world)
    several_files(world)
    encrypted(world)


def one_file(world: World) -> None:
    """A copy of one file, made while the original was attached and everything flushed."""
    original = world.device(64 * MIB)
    handle = connect(original)
    handle.pwrite(b"\x05" * MIB, 0)
    handle.flush()
    copy = copied(world, original.path, "copy.vsl")
    content = copy.read_bytes()
    said = world.vsl("attach", copy, fails=True).text
    check("attached already" in said and str(original.path) in said, "the refusal does not say what is attached")
    check(f"`vsl attach --new-identity {copy}`" in said, "the refusal does not say what to do")
    equal(copy.read_bytes(), content, "the copy after it was refused")
    said = world.vsl("attach", "--new-identity", original.path, "--name", "again", fails=True).text
    check("in use" in said or "attached already" in said, "the original got a new identity while it was attached")

    world.vsl("attach", "--new-identity", copy)
    uuids = [uuid(world, name) for name in ("disk", "copy")]
    check(uuids[0] != uuids[1], "both have one UUID")
    second = device(world, "copy", copy, original.size)
    other = connect(second)
    equal(bytes(other.pread(MIB, 0)), b"\x05" * MIB, "what the copy took with it")
    other.pwrite(b"\x06" * MIB, 0)
    other.flush()
    equal(bytes(handle.pread(MIB, 0)), b"\x05" * MIB, "the original, after a write to the copy")
    handle.shutdown()
    other.shutdown()

    # It lasts: both come back by themselves.
    world.vsl("down")
    world.vsl("up")
    world.wait(lambda: {world.servers.state(device) for device in (original, second)} == {"attached"}, "both to be attached again")
    equal([uuid(world, name) for name in ("disk", "copy")], uuids, "UUIDs after a restart")
    equal(bytes(connect(second).pread(MIB, 0)), b"\x06" * MIB, "the copy after a restart")
    world.vsl("detach", "disk", "copy", "--force")
    # A copy of the copy is the copy's twin, not the original's.
    third = copied(world, copy, "third.vsl")
    world.vsl("attach", original.path, "--name", "disk")
    world.vsl("attach", third)
    world.vsl("attach", copy, fails=True)
    world.vsl("detach", "disk", "third")


def several_files(world: World) -> None:
    """Files of a copy and of its original are told apart."""
    original = [world.dir / f"m{number}.vsl" for number in range(3)]
    world.vsl("create", *original, "--parity", "1", "--size", 64 * MIB, "--yes")
    (world.dir / "c").mkdir()
    copy = [copied(world, path, f"c/{path.name}") for path in original]
    world.vsl("attach", *original, "--name", "m")
    said = world.vsl("attach", *copy, "--name", "c", fails=True).text
    recommended = " ".join(["vsl", "attach", "--new-identity", *map(str, copy)])
    check(f"`{recommended}`" in said, f"the recommended command does not name all files: {said}")
    world.vsl("attach", "--new-identity", *copy[:2], "--name", "c", fails=True)
    world.vsl("attach", "--new-identity", *copy, "--name", "c")
    world.vsl("detach", "m", "c")
    said = world.vsl("attach", f"{copy[0]},{original[1]},{copy[2]}", "--name", "mixed", fails=True).text
    check("belongs to device" in said, f"files of two devices were not told apart: {said}")
    world.vsl("attach", *copy, "--name", "c")
    world.vsl("attach", *original, "--name", "m")
    world.vsl("detach", "m", "c")


def encrypted(world: World) -> None:
    """The key opens the copy too; without it nothing is changed."""
    key = world.dir / "key"
    key.write_bytes(os.urandom(64))
    key.chmod(0o600)
    original = world.dir / "secret.vsl"
    world.vsl("create", original, "--size", 64 * MIB, "--encrypt", "--key-file", key, "--yes")
    world.vsl("attach", original, "--key-file", key)
    copy = copied(world, original, "secret-copy.vsl")
    wrong = world.dir / "wrong"
    wrong.write_bytes(os.urandom(64))
    wrong.chmod(0o600)
    content = copy.read_bytes()
    world.vsl("attach", "--new-identity", copy, "--key-file", wrong, fails=True)
    equal(copy.read_bytes(), content, "the copy after a wrong key")
    world.vsl("attach", "--new-identity", copy, "--key-file", key)
    world.vsl("detach", "secret", "secret-copy")


def copied(world: World, path: Path, name: str) -> Path:
    """A copy, made as people make them."""
    world.run("cp", path, world.dir / name)
    return world.dir / name


def device(world: World, name: str, path: Path, size: int) -> Device:
    """An attached device."""
    return Device(name, path, size, world.servers.uri(name))


def uuid(world: World, name: str) -> str:
    """What it is known by."""
    return world.vsl("status", name, "--field", "uuid").out.strip()
