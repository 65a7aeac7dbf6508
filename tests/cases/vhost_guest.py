"""A guest's disk as vhost-user-blk, with two queues: a file system verified, space given back, and outages under fio verify without an error."""

import random

from harness import MIB, World, check, equal, nvme
from harness.guest import BACKPORTS, DISTRIBUTION, Guest, newer_kernel
from harness.guest_restarts import killed, restarts, stopped, upgraded
from harness.vhost import boot

OURS = True
LIMIT = 240


def run(world: World) -> None:
    world.servers.options = ["--vhost"]
    device = world.device(256 * MIB)
    with boot(world, DISTRIBUTION, device) as (guest, path):
        keeps_files(world, guest, path)
        restarts(world, guest, device, path, [killed, stopped, upgraded, killed], random.randrange(1 << 32))
    if newer_kernel(world, "vhost-user-blk with a newer kernel"):
        with boot(world, BACKPORTS, device) as (guest, path):
            keeps_files(world, guest, path)
            equal(guest.errors(), [], f"errors in the log of Linux {guest.version}")


def keeps_files(world: World, guest: Guest, path: str) -> None:
    """ext4, made, written and checked; what is deleted or discarded is given back and reads as zeros."""
    guest.run(f"mkfs.ext4 -q -F {path} 2>&1; mount -t ext4 {path} /mnt", timeout=120)
    guest.fio("/mnt/file", "--rw=randwrite", "--bsrange=4k-64k", "--size=16m", "--iodepth=16", "--verify=crc32c", "--do_verify=1")
    guest.run("sync -f /mnt")
    full = nvme.status(world, "disk")["mapped_bytes"]
    guest.run(f"rm /mnt/file; sync -f /mnt; fstrim -v /mnt; umount /mnt; e2fsck -fn {path} 2>&1")
    freed = full - nvme.status(world, "disk")["mapped_bytes"]
    check(freed > 12 * MIB, f"fstrim gave back {freed} bytes of 16 MiB")
    guest.run(f"blkdiscard -f {path}")
    equal(nvme.status(world, "disk")["mapped_bytes"], 0, "bytes mapped after a discard of everything")
    nvme.zeros(guest, path, 16)
