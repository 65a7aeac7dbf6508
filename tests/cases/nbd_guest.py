"""A guest's disk over NBD, by its kernel and by QEMU; with QEMU no kill -9 of ours becomes an error."""

import random

from harness import MIB, World, check, equal
from harness.guest import DISTRIBUTION, HOST, Guest, free_port, nbd_disk, programs
from harness.guest_restarts import killed, restarts, stopped, upgraded

OURS = True
LIMIT = 240
VERIFIED = ["--rw=randwrite", "--bsrange=4k-64k", "--size=16m", "--iodepth=16", "--verify=crc32c", "--do_verify=1"]


def run(world: World) -> None:
    port = free_port()
    world.servers.options = ["--nbd-listen", f"127.0.0.1:{port}"]
    device, system, _ = (world.device(256 * MIB, name) for name in ["disk", "system", "other"])
    world.run("nbdcopy", programs(world), system.uri)
    # Its programs come from a device of ours, too.
    with Guest(world, DISTRIBUTION, *nbd_disk(device, "disk"), programs_disk=nbd_disk(system, "programs")) as guest:
        path = guest.disk("disk")
        guest.run(f"mkfs.ext4 -q {path}; mount -t ext4 {path} /mnt", timeout=120)
        guest.fio("/mnt/file", *VERIFIED)
        guest.run("sync -f /mnt")
        full = mapped(world)
        guest.run(f"rm /mnt/file; sync -f /mnt; fstrim -v /mnt; umount /mnt; e2fsck -fn {path}")
        check(full - mapped(world) > 12 * MIB, f"fstrim in the guest gave back only {full - mapped(world)} bytes")

        restarts(world, guest, device, path, [killed, stopped, upgraded, killed], random.randrange(1 << 32))

        guest.run(f"modprobe nbd; nbd-client {HOST} {port} /dev/nbd0 -N other -b 4096 -C 2")
        guest.fio("/dev/nbd0", *VERIFIED)
        guest.run("blkdiscard /dev/nbd0; nbd-client -d /dev/nbd0")
        equal(mapped(world, "other"), 0, "bytes that blkdiscard in the guest left")
        equal(guest.errors(), [], "errors in the guest's kernel log")


def mapped(world: World, name: str = "disk") -> int:
    """How much of a device holds data."""
    [shown] = [d for d in world.servers.status()["devices"] if d["name"] == name]
    return shown["mapped_bytes"]
