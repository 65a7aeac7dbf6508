"""A device with parity that was killed on a full disk can be read, and says how much room it needs where; with that much it is written again."""

import errno
import os
import re
from pathlib import Path

import nbd

from harness import MIB, World, check, equal
from harness.libnbd import connect
from harness.servers import Device, kill

OURS = True
ROOT = True
SIZES = {"kB": 10**3, "MB": 10**6, "GB": 10**9}


def run(world: World) -> None:
    small = world.dir / "small"
    small.mkdir()
    world.run("mount", "-t", "tmpfs", "-o", "size=260m", "tmpfs", small)
    ballast = small / "ballast"
    ballast.write_bytes(bytes(80 * MIB))
    paths = [small / f"m{number}.vsl" for number in range(3)]
    world.vsl("up")
    world.vsl("create", *paths, "--parity", "1", "--size", 256 * MIB, "--yes")
    world.vsl("attach", *paths, "--name", "m")
    device = Device("m", paths[0], 256 * MIB, world.servers.uri("m"))
    kept = fill(device)
    kill(device)
    # What was reserved and holds nothing goes too, as in a copy: a recovery could make do with it.
    for path in paths:
        world.run("fallocate", "--dig-holes", path)
    use_up(ballast)

    # At the start of the service, and by hand.
    world.vsl("up")
    world.wait(lambda: world.servers.state(device) not in ("detached", "scanning"), "the attach at the start to end")
    needed = reads_only(world, device, kept, small)
    world.vsl("detach", "m")
    said = world.vsl("attach", *paths, "--name", "m").text
    check("read-only" in said and f"the file system at {small}" in said and "make room" in said, "the attach does not say what it needs")
    equal(reads_only(world, device, kept, small), needed, "what it needs, said again")
    world.vsl("status", "--errors", fails=True)
    world.vsl("detach", "m")

    # What it asks for is enough.
    free = os.statvfs(small).f_bavail * os.statvfs(small).f_frsize
    os.truncate(ballast, ballast.stat().st_size - max(needed - free, 0))
    said = world.vsl("attach", *paths, "--name", "m").text
    check("read-only" not in said, f"with {needed} bytes free it is still read-only")
    device.uri = world.servers.uri("m")
    ballast.unlink()
    h = connect(device)
    h.pwrite(b"\x07" * MIB, 0)
    h.flush()
    kept[0] = b"\x07" * MIB
    everything(h, kept)
    h.shutdown()
    equal(world.vsl("status", "m", "--field", "health").out.strip(), "healthy", "health with room again")
    world.vsl("down", "--force")
    world.run("umount", small)


def fill(device: Device) -> dict[int, bytes]:
    """Writes until the disk is full; gives what was flushed."""
    h = connect(device)
    kept: dict[int, bytes] = {}
    for number in range(256):
        content = os.urandom(MIB)
        try:
            h.pwrite(content, number * MIB)
            h.flush()
        except nbd.Error as failed:
            equal(errno.errorcode.get(failed.errnum), "ENOSPC", f"error after {number} MiB")
            break
        kept[number] = content
    check(32 < len(kept) < 200, f"{len(kept)} MiB fit on 180 MiB with parity")
    return kept


def use_up(ballast: Path) -> None:
    """Takes what is left on the disk."""
    with open(ballast, "ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(64 << 10))
        except OSError as full:
            equal(full.errno, errno.ENOSPC, "error of a full disk")


def reads_only(world: World, device: Device, kept: dict[int, bytes], mount: Path) -> int:
    """It is attached to be read only, with everything on it; gives how many bytes it asks for."""
    [shown] = [d for d in world.servers.status()["devices"] if d["name"] == device.name]
    equal((shown["state"], shown["read_only"], shown["store_full"]), ("attached-read-only", True, True), "state on the full disk")
    found = re.search(rf"up to ([\d.]+) ([kMG]B) .* on the file system at {re.escape(str(mount))}, which has (.*) left; make room", shown["health"])
    check(found is not None, f"health does not say what is needed where: {shown['health']}")
    device.uri = world.servers.uri(device.name)
    h = connect(device)
    check(h.is_read_only(), "clients are not told that it is read-only")
    everything(h, kept)
    h.shutdown()
    # Shown with two decimals.
    return int((float(found[1]) + 0.01) * SIZES[found[2]])


def everything(h: nbd.NBD, kept: dict[int, bytes]) -> None:
    """Fails unless all that was flushed reads back."""
    for number, content in kept.items():
        equal(bytes(h.pread(MIB, number * MIB)), content, f"MiB {number}")
