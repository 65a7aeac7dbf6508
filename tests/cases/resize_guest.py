"""A disk grows under a guest that writes: Linux learns it over NVMe/TCP and vhost-user-blk at once, ext4 grows online, and a kill in the middle leaves the old size or the new one."""

import random
import time

from harness import MIB, World, check, equal, nvme
from harness.guest import DISTRIBUTION, Guest, fio_command
from harness.guest_restarts import killed
from harness.servers import Device
from harness.vhost import boot

OURS = True
LIMIT = 480


def run(world: World) -> None:
    port = nvme.listen(world, "--vhost")
    device = world.device(128 * MIB)
    with Guest(world, DISTRIBUTION) as guest:
        subsystem = nvme.nqn(world, device.name)
        nvme.connect(guest, subsystem, port)
        grows(world, guest, device, nvme.namespace(guest, subsystem), 128)
        nvme.disconnect(guest, subsystem)
    other = world.device(128 * MIB, name="other")
    with boot(world, DISTRIBUTION, other) as (guest, path):
        grows(world, guest, other, path, 128)


def sees(guest: Guest, path: str) -> int:
    """Bytes of a disk, as the guest's kernel knows it."""
    return int(guest.run(f"cat /sys/block/{path.removeprefix('/dev/')}/size")) * 512


def grows(world: World, guest: Guest, device: Device, path: str, mebibytes: int) -> None:
    """ext4 under fio verify, while the disk becomes larger three times, and the service dies while it does."""
    equal(sees(guest, path), mebibytes * MIB, "bytes at first")
    guest.run(f"mkfs.ext4 -q -F -E lazy_itable_init=0 {path} 2>&1; mount -t ext4 {path} /mnt", timeout=120)
    job = fio_command("/mnt/file", "--rw=randwrite", "--bsrange=4k-64k", "--size=16m", "--iodepth=16", "--verify=crc32c", "--do_verify=1",
                      "--randseed=$pass")
    work = guest.start(f"trap '' PIPE; rm -f /tmp/stop; pass=0; while [ ! -e /tmp/stop ]; do pass=$((pass + 1)); {job}; done; echo $pass")
    for larger in (2 * mebibytes, 4 * mebibytes):
        time.sleep(1)
        world.vsl("resize", device.name, larger * MIB)
        world.wait(lambda larger=larger: sees(guest, path) == larger * MIB, f"the guest's kernel to see {larger} MiB")
        guest.run(f"resize2fs {path} 2>&1", timeout=120)
    free = int(guest.run("df -m /mnt | tail -n 1").split()[3])
    check(free > 3 * mebibytes, f"{free} MiB are free in the file system")
    # The service dies while it gives the device yet another size.
    last = 6 * mebibytes * MIB
    client = world.start(world.vsl_path, "resize", device.name, last, log="resize")
    time.sleep(random.uniform(0, 0.05))
    killed(world, device)
    client.wait()
    check(nvme.status(world, device.name)["bytes"] in (4 * mebibytes * MIB, last), "neither the old size nor the new one")
    world.vsl("resize", device.name, last)
    world.wait(lambda: sees(guest, path) == last, "the guest's kernel to see the last size")
    guest.run("touch /tmp/stop")
    passes = int(guest.finish(work, timeout=120))
    check(passes > 0, "fio verified nothing")
    guest.run(f"resize2fs {path} 2>&1", timeout=120)
    # More than there was room for at first.
    more = ["--rw=write", "--bs=1m", f"--size={mebibytes}m", "--verify=crc32c"]
    guest.fio("/mnt/more", *more, "--do_verify=1", timeout=200)
    guest.run(f"umount /mnt; e2fsck -fn {path} 2>&1", timeout=120)
    # It shrinks behind its file system.
    check("holds data" in world.vsl("resize", device.name, 5 * mebibytes * MIB, fails=True).text, "data were cut off")
    guest.run(f"e2fsck -f -y {path} 2>&1; resize2fs {path} {5 * mebibytes - 8}M 2>&1", timeout=120)
    guest.run(f"/usr/bin/blkdiscard --force --offset {(5 * mebibytes - 8) * MIB} {path}")
    world.vsl("resize", device.name, 5 * mebibytes * MIB)
    world.wait(lambda: sees(guest, path) == 5 * mebibytes * MIB, "the guest's kernel to see that it shrank")
    guest.run(f"mount -t ext4 {path} /mnt", timeout=60)
    guest.fio("/mnt/more", *more, "--verify_only=1", timeout=200)
    guest.run(f"umount /mnt; e2fsck -fn {path} 2>&1", timeout=120)
    equal(guest.errors(), [], "errors in the guest's kernel log")
    print(f"figure: grown from {mebibytes} to {4 * mebibytes} MiB under fio verify in a guest, {passes} passes verified")
