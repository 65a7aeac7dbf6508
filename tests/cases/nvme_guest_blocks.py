"""Blocks of 16 KiB over NVMe/TCP: ext4 and xfs with such blocks mount in a guest, and buffered writes of 8 KiB never arrive smaller."""

from harness import KIB, MIB, World, check, equal, nvme
from harness.guest import BACKPORTS, DISTRIBUTION, Guest, newer_kernel

OURS = True
LIMIT = 180
BLOCK = 16 * KIB


def run(world: World) -> None:
    port = nvme.listen(world)
    device = world.device(512 * MIB)
    world.vsl("config", "disk", "nvme-block", "16KiB")
    world.vsl("detach", "disk")
    world.vsl("attach", device.path, "--name", "disk")
    subsystem = nvme.nqn(world, "disk")
    if newer_kernel(world, "16 KiB blocks over NVMe/TCP"):
        with Guest(world, BACKPORTS) as guest:
            nvme.connect(guest, subsystem, port)
            path = nvme.namespace(guest, subsystem)
            blocks = nvme.cli(guest, f"id-ns {path}")
            equal((blocks["lbafs"][blocks["flbas"] & 15]["ds"], blocks["nsze"]), (14, 512 * MIB // BLOCK), "block size and blocks")
            queue = f"/sys/block/{path.removeprefix('/dev/')}/queue"
            equal(guest.read(f"{queue}/logical_block_size"), str(BLOCK), "logical_block_size")
            equal(guest.read(f"{queue}/atomic_write_unit_max_bytes"), str(MIB), "atomic_write_unit_max_bytes")
            # Linux 7.3 scans a drive that several hosts may use for partitions before it knows that its blocks are larger than a page,
            # and complains that it cannot; later it can.
            guest.run(f"dmesg -c > /dev/null; blockdev --rereadpt {path}")
            with nvme.recorded(world, "disk") as requests:
                guest.run(f"mkfs.ext4 -q -F -b {BLOCK} {path} 2>&1", timeout=120)
                overwrites(guest, f"mount -t ext4 {path} /mnt")
                guest.run(f"mkfs.xfs -q -f -b size={BLOCK} -s size={BLOCK} {path} 2>&1; modprobe xfs", timeout=120)
                overwrites(guest, f"mount -t xfs {path} /mnt")
            writes = [request for request in requests if request[0] == "Write"]
            check(len(writes) > 100, f"only {len(writes)} writes arrived")
            equal([w for w in writes if w[1] % BLOCK or w[2] % BLOCK], [], "writes that are not whole blocks")
            equal(guest.errors(), [], "errors in the guest's kernel log")
    with Guest(world, DISTRIBUTION) as guest:
        # A kernel whose blocks cannot be larger than a page shows the drive without a size.
        nvme.connect(guest, subsystem, port)
        path = nvme.namespace(guest, subsystem)
        equal(guest.read(f"/sys/block/{path.removeprefix('/dev/')}/size"), "0", f"size of 16 KiB blocks for Linux {guest.version}")


def overwrites(guest: Guest, mount: str) -> None:
    """A buffered file, overwritten in pieces of 8 KiB as a database does, and read back from the drive after a new mount."""
    options = ["--direct=0", "--size=4m", "--bs=8k"]
    checked = ["--rw=randwrite", "--fsync=4", "--verify=crc32c", "--do_verify=0", "--randseed=7"]
    guest.run(mount)
    guest.fio("/mnt/file", "--rw=write", "--end_fsync=1", *options)
    guest.fio("/mnt/file", *checked, *options)
    guest.run(f"umount /mnt; {mount}")
    guest.fio("/mnt/file", *checked, *options, "--verify_only")
    guest.run("fstrim /mnt; umount /mnt")
