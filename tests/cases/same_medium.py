"""One medium by two ways is attached once: a loop device over an attached file is refused, in the service and beside it, and nothing is lost."""

from pathlib import Path

from harness import MIB, World, check, equal
from harness.libnbd import connect

OURS = True
ROOT = True


def run(world: World) -> None:
    device = world.device(64 * MIB)
    handle = connect(device)
    handle.pwrite(b"\x05" * MIB, 0)
    handle.flush()
    link = world.dir / "link.vsl"
    link.hardlink_to(device.path)
    loops: list[str] = []
    try:
        whole = loop(world, loops, device.path)
        again = loop(world, loops, device.path)
        stacked = loop(world, loops, Path(whole))
        part = loop(world, loops, device.path, "--offset", "4096")
        for way in [whole, again, stacked, part, link]:
            refused(world, way)
        h2 = connect(device)
        equal(bytes(h2.pread(MIB, 0)), b"\x05" * MIB, "the device after those attempts")
        h2.shutdown()
        handle.shutdown()

        # The other way round: what is attached is the loop device.
        world.vsl("detach", device.name, "--force")
        world.vsl("attach", stacked, "--name", "stacked")
        for way in [device.path, link, again, whole]:
            refused(world, way)
        world.vsl("detach", "stacked")

        # Once nobody has it, each way is as good as any other.
        for way in [again, device.path]:
            world.vsl("attach", way, "--name", "any")
            world.vsl("detach", "any")
    finally:
        world.vsl("down", "--force", fails=None)
        for node in reversed(loops):
            world.run("losetup", "--detach", node, fails=None)


def loop(world: World, loops: list[str], path: Path, *options: str) -> str:
    """A loop device over a file or another device."""
    node = world.run("losetup", "--find", "--show", *options, path).out.strip()
    loops.append(node)
    return node


def refused(world: World, way: object) -> None:
    """Neither the service nor another process takes the medium by this way; they say who has it."""
    for command in [
        ["attach", way, "--name", "second"],
        ["serve", way, "--socket", world.dir / "second.sock"],
        ["create", way, "--size", "32MiB", "--yes"],
    ]:
        said = world.vsl(*command, fails=True, timeout=20).text
        check(str(way) in said, f"vsl {command[0]} {way}: the error does not name what was given")
        check("in use by" in said or "attached already" in said, f"vsl {command[0]} {way}: the error does not say that it is in use")
