"""The disk under a device fills up: ENOSPC is reported, acknowledged data stays readable, also after a kill, and freed space is used."""

import errno
import os

import nbd

from harness import MIB, World, check, equal
from harness.libnbd import connect
from harness.servers import kill

OURS = True
ROOT = True


def run(world: World) -> None:
    small = world.dir / "small"
    small.mkdir()
    world.run("mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", small)
    ballast = small / "ballast"
    ballast.write_bytes(bytes(64 * MIB))
    device = world.device(256 * MIB, path=small / "disk.vsl")
    h = connect(device)
    kept: dict[int, bytes] = {}
    error = 0
    for number in range(256):
        content = os.urandom(MIB)
        try:
            h.pwrite(content, number * MIB)
            h.flush()
        except nbd.Error as failed:
            error = failed.errnum
            break
        kept[number] = content
    check(len(kept) > 32, f"only {len(kept)} MiB fit on 96 MiB")
    equal(errno.errorcode.get(error), "ENOSPC", f"error after {len(kept)} MiB")
    everything(h, kept, "on the full disk")
    [shown] = [d for d in world.servers.status()["devices"] if d["name"] == device.name]
    equal(shown["state"], "attached", "state on the full disk")

    # The worst moment to crash: there is no room for anything that recovery might want to write.
    kill(device)
    world.servers.revive(device)
    everything(connect(device), kept, "after a kill on the full disk")

    ballast.unlink()
    h = connect(device)
    for number in range(200, 232):
        kept[number] = os.urandom(MIB)
        h.pwrite(kept[number], number * MIB)
    h.flush()
    everything(h, kept, "after space was freed")
    h.shutdown()
    del h
    world.vsl("detach", device.name, "--force")
    world.vsl("attach", device.path, "--name", device.name)
    everything(connect(device), kept, "after detach and attach")
    world.vsl("down", "--force")
    world.run("umount", small)


def everything(h: nbd.NBD, kept: dict[int, bytes], when: str) -> None:
    """Fails unless all that was acknowledged reads back."""
    for number, content in kept.items():
        equal(bytes(h.pread(MIB, number * MIB)), content, f"MiB {number} {when}")
