"""A guest whose disk QEMU takes from us over NBD: it runs programs from it, verifies what it writes, and written through it does not notice a kill -9."""

import random

from harness import MIB, Device, World, check, equal
from harness.guest import DISTRIBUTION, Guest, programs
from harness.guest_restarts import restarts
from harness.servers import kill

OURS = True
LIMIT = 300


def run(world: World) -> None:
    device = world.device(256 * MIB)
    system = world.device(256 * MIB, "system")
    world.run("nbdcopy", programs(world), system.uri)
    with Guest(world, DISTRIBUTION, *disk(device, "disk"), programs_disk=disk(system, "programs")) as guest:
        path = guest.disk("disk")
        guest.run(f"mkfs.ext4 -q {path}; mount -t ext4 {path} /mnt", timeout=120)
        guest.fio("/mnt/file", "--rw=randwrite", "--bsrange=4k-64k", "--size=32m", "--iodepth=16", "--verify=crc32c", "--do_verify=1")
        guest.run("sync")
        [full] = [d["mapped_bytes"] for d in world.servers.status()["devices"] if d["name"] == "disk"]
        guest.run("rm /mnt/file; sync; fstrim -v /mnt; umount /mnt; e2fsck -fn " + path)
        [empty] = [d["mapped_bytes"] for d in world.servers.status()["devices"] if d["name"] == "disk"]
        check(full - empty > 24 * MIB, f"fstrim in the guest gave back only {full - empty} bytes")

        def killed() -> None:
            kill(device)
            world.servers.revive(device)

        def stopped() -> None:
            world.vsl("down", "--force")
            world.servers.revive(device)

        # QEMU repeats what was not answered, and nothing else: what was answered must have left our process.
        world.vsl("config", "disk", "durability", "write-through")
        restarts(world, guest, path, [killed, stopped, killed], random.randrange(1 << 32))
        equal(guest.errors(), [], "errors in the guest's kernel log")


def disk(device: Device, serial: str) -> list[str]:
    """The device as a virtio disk, whose requests QEMU keeps for a minute while nobody answers."""
    return [
        "-blockdev",
        f"driver=nbd,node-name={serial},server.type=unix,server.path={device.socket},export={device.name},reconnect-delay=60,discard=unmap",
        "-device", f"virtio-blk-pci,drive={serial},serial={serial},write-cache=on,logical_block_size=4096,physical_block_size=4096",
    ]
