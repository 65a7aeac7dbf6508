"""A member of a device with parity that was cut, or holds a copy of another, costs nothing but redundancy; what messages recommend works as it stands."""

import os
import shutil

from harness import MIB, Device, World, check, equal
from harness.fio import fio

OURS = True
SIZE = 128 * MIB
VERIFY = ["--rw=randwrite", "--bs=16k", "--size=48M", "--iodepth=8", "--verify=crc32c"]


def run(world: World) -> None:
    world.servers.up()
    paths = [world.dir / f"member{number}.vsl" for number in range(4)]
    world.vsl("create", *paths, "--size", SIZE, "--parity", 1)
    world.vsl("attach", *paths, "--name", "disk")
    device = Device("disk", paths[0], SIZE, world.servers.uri("disk"))
    fio(world, device, *VERIFY, "--do_verify=1", "--end_fsync=1")

    # One that was cut. It is not touched until it is rebuilt.
    world.vsl("detach", "disk")
    older = world.dir / "older"
    shutil.copyfile(paths[1], older)
    world.vsl("attach", *paths, "--name", "disk")
    fio(world, device, *VERIFY, "--do_verify=1", "--end_fsync=1")
    world.vsl("detach", "disk")
    length = paths[1].stat().st_size
    os.truncate(paths[1], length // 2)
    degraded(world, device, paths, 1, "truncated")
    equal(paths[1].stat().st_size, length // 2, "bytes of the member that was cut")
    # An older copy of it in another's place does not step in for it: two are gone then.
    world.vsl("detach", "disk")
    aside = world.dir / "aside"
    paths[3].rename(aside)
    shutil.copyfile(older, paths[3])
    said = world.vsl("attach", *paths, "--name", "disk", fails=True).text
    check("2 of its dies are missing or failed" in said, said)
    aside.replace(paths[3])
    degraded(world, device, paths, 1)
    paths[1].unlink()
    rebuilt(world, device, 1)

    # One that holds a copy of another.
    world.vsl("detach", "disk")
    shutil.copyfile(paths[0], paths[2])
    before = paths[2].read_bytes()[: 1 << 20]
    degraded(world, device, paths, 2, "a copy of file 0")
    equal(paths[2].read_bytes()[: 1 << 20] == before, True, "what was set aside stays as it is")
    world.vsl("rebuild", "disk", 2, "--onto", world.dir / "new.vsl", "--wait")
    fio(world, device, *VERIFY, "--verify_only=1")
    paths[2] = world.dir / "new.vsl"

    # One that holds an old copy of itself: its sectors would all fail their checks, and it would count as redundancy.
    world.vsl("detach", "disk")
    shutil.copyfile(paths[1], older)
    world.vsl("attach", *paths, "--name", "disk")
    fio(world, device, *VERIFY, "--do_verify=1", "--end_fsync=1")
    world.vsl("detach", "disk")
    shutil.copyfile(older, paths[1])
    degraded(world, device, paths, 1, "an old copy")
    rebuilt(world, device, 1)

    # One that is damaged, and one of another device, however new that is: only its owner can give the place up.
    world.vsl("detach", "disk")
    with open(paths[3], "r+b") as file:
        for copy in range(2):
            file.seek(copy * 65536 + 100)
            file.write(b"\x55" * 64)
    degraded(world, device, paths, 3, "damaged")
    world.vsl("rebuild", "disk", 3, "--onto", world.dir / "next.vsl", "--wait")
    paths[3] = world.dir / "next.vsl"
    others = [world.dir / f"other{number}.vsl" for number in range(4)]
    world.vsl("create", *others, "--size", SIZE, "--parity", 1)
    for _ in range(8):
        world.vsl("attach", *others, "--name", "other", "--once")
        world.vsl("detach", "other")
    world.vsl("detach", "disk")
    paths[0].rename(aside)
    shutil.copyfile(others[0], paths[0])
    said = world.vsl("attach", ",".join(map(str, paths)), "--name", "disk", fails=True).text
    check(f"{paths[0]}: belongs to device" in said, said)
    degraded(world, device, [",".join(map(str, paths)), "--degraded"], 0, "belongs to device")
    world.vsl("detach", "disk")
    aside.replace(paths[0])
    degraded(world, device, paths, 0)
    rebuilt(world, device, 0)

    # A member that is whole is not rebuilt, and the help is about members.
    said = world.vsl("rebuild", "disk", 3, "--wait", fails=True).text
    check("format --help" not in said and "out of service" in said, said)
    # One file twice is a mistake, and so is another device's.
    world.vsl("detach", "disk")
    said = world.vsl("attach", f"{paths[0]},{paths[0]},{paths[1]},{paths[3]}", "--name", "disk", fails=True).text
    check("named twice" in said or "in use by this process" in said, said)
    # Without one, and without its name: the file to rebuild onto is asked for.
    world.vsl("attach", paths[0], paths[1], paths[2], "--degraded", "--name", "disk")
    said = world.vsl("rebuild", "disk", 3, fails=True).text
    check("--onto" in said, said)
    paths[3].unlink()
    # One alone is too few for what is lost: the others are found beside it.
    world.vsl("detach", "disk")
    older.unlink()
    world.vsl("attach", paths[0], "--degraded", "--name", "disk")
    world.vsl("rebuild", "disk", 3, "--onto", paths[3], "--wait")
    fio(world, device, *VERIFY, "--verify_only=1")
    world.vsl("detach", "disk")
    together(world, paths)


def degraded(world: World, device: Device, paths: list, die: int, why: str | None = None) -> None:
    """It attaches without a member, says so, why, and what restores it; and everything reads."""
    said = world.vsl("attach", *paths, "--name", "disk").text
    check(f"vsl rebuild disk {die} --onto FILE" in said, said)
    equal(world.vsl("status", "disk", "--field", "health").out.strip(), "degraded: 1 of 4 dies out of service", "health")
    equal(world.vsl("status", "disk", "--field", "lost_dies").out.strip().strip("[]"), str(die), "the lost die")
    aside = world.vsl("status", "disk", "--field", "set_aside").out.strip()
    check(why is None or (f"die {die}: " in aside and why in aside and why in said), f"{aside!r}, and {said}")
    fio(world, device, *VERIFY, "--verify_only=1")


def rebuilt(world: World, device: Device, die: int) -> None:
    """It is rebuilt onto the place that it had."""
    world.vsl("rebuild", "disk", die, "--wait")
    equal(world.vsl("status", "disk", "--field", "health").out.strip(), "healthy", "health after the rebuild")
    world.wait(lambda: "rebuild-ends" in world.vsl("events", "disk").out, "the event of a rebuild's end")
    check("die-lost" in world.vsl("events", "disk").out, "the loss left no event")
    fio(world, device, *VERIFY, "--verify_only=1")


def together(world: World, paths: list) -> None:
    """`serve` and `sure-erase` take the files of one device as `create` and `attach` do."""
    world.run("nbdinfo", "--size", "--", "[", world.vsl_path, "serve", *paths, "]")
    said = world.vsl("sure-erase", paths[0], "--yes", fails=True).text
    check("4 files" in said, said)
    world.vsl("sure-erase", *paths, "--yes")
    world.vsl("attach", *paths, "--name", "disk")
    equal(world.vsl("status", "disk", "--field", "mapped_bytes").out.strip(), "0", "bytes after the erase")
