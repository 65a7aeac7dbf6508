"""Zoned namespaces over NVMe/TCP: an unmodified kernel finds the zones, writes, resets and appends, and btrfs lives on them through a kill."""

import time

from harness import KIB, MIB, World, check, equal, nvme
from harness.guest import BACKPORTS, DISTRIBUTION, Guest, newer_kernel
from harness.guest_restarts import killed
from harness.servers import Device

OURS = True
LIMIT = 450
# Linux 7.3 says so, and then waits for ever, when it has counted requests twice that it sent again to zones after an outage: seen once.
MISCOUNTED = "(blk_queue_usage_counter_release) <= 0"
GUESTS = 3
ZONE = 16 * MIB
ZONES = 64
ACTIVE = 14


def run(world: World) -> None:
    port = nvme.listen(world)
    path = world.dir / "zoned.vsl"
    world.vsl("create", path, "--size", ZONES * ZONE, "--zones", ZONE)
    world.vsl("attach", path, "--name", "zoned")
    device = Device("zoned", path, 0, world.servers.uri("zoned"))
    info = nvme.status(world, "zoned")
    # The device holds as much as it was made for: the last zones are those that whole erase blocks leave no room for.
    zones, capacity = info["zones"], info["zone_capacity_bytes"]
    check(ZONES - 2 <= zones <= ZONES and ZONE - 2 * MIB < capacity < ZONE, f"{info}")
    subsystem = nvme.nqn(world, "zoned")
    with Guest(world, DISTRIBUTION) as guest:
        nvme.connect(guest, subsystem, port)
        disk = nvme.namespace(guest, subsystem)
        is_found(guest, disk, zones, capacity)
        is_written_in_order(guest, disk, capacity)
        is_managed(guest, disk)
        # Before Linux 6.10 this scheduler keeps the writes of a zone in order, and whoever uses zones chooses it.
        guest.run(f"for queue in /sys/block/nvme*c*n1/queue; do echo mq-deadline > $queue/scheduler; done; blkzone reset {disk}")
        verified(guest, disk)
        amplification = nvme.status(world, "zoned")["write_amplification"]
        check(amplification < 1.2, f"write amplification of zones that are written in turn and reset: {amplification}")
        equal(guest.errors(), [], f"errors in the log of Linux {guest.version}")
        nvme.disconnect(guest, subsystem)
    if newer_kernel(world, "btrfs on zones"):
        with Guest(world, BACKPORTS) as guest:
            nvme.connect(guest, subsystem, port)
            limits = [queue(guest, nvme.namespace(guest, subsystem), f"max_{kind}_zones") for kind in ("active", "open")]
            equal(limits, [str(ACTIVE)] * 2, "active and open zones at most")
            verified(guest, nvme.namespace(guest, subsystem))
            is_a_drive_of_today(world, guest, port)
            lived = on_btrfs(world, guest, device, nvme.namespace(guest, subsystem))
        for number in range(1, GUESTS):
            if lived:
                break
            print(f"figure: Linux {guest.version} lost count of its requests during the kill, and is asked once more", flush=True)
            with Guest(world, BACKPORTS, name=f"guest{number}") as guest:
                nvme.connect(guest, subsystem, port)
                lived = on_btrfs(world, guest, device, nvme.namespace(guest, subsystem))
        check(lived, f"Linux {guest.version} loses count of its requests each time")


def verified(guest: Guest, disk: str) -> None:
    """fio writes several zones at a time, several requests at a time, some zones over and over, and finds what it wrote."""
    guest.fio(disk, "--zonemode=zbd", "--rw=randwrite", "--bs=64k", f"--size={6 * ZONE}", "--io_size=80m", "--iodepth=8", "--max_open_zones=4",
              "--verify=crc32c", "--do_verify=1", timeout=100)


def queue(guest: Guest, disk: str, name: str) -> str:
    return guest.read(f"/sys/block/{disk.removeprefix('/dev/')}/queue/{name}")


def report(guest: Guest, disk: str, *options: str) -> list[tuple[int, int, int, str]]:
    """Zones as blkzone reports them: start, capacity and write pointer in bytes, and the state."""
    found = []
    for line in guest.run(f"blkzone report {' '.join(options)} {disk}").splitlines():
        words = line.replace(",", " ").split()
        start, capacity, pointer = (int(words[words.index(key) + 1], 16) * 512 for key in ("start:", "cap", "wptr"))
        found.append((start, capacity, pointer, line.split("(")[1].split(")")[0]))
    return found


def is_found(guest: Guest, disk: str, zones: int, capacity: int) -> None:
    """What the kernel and two tools make of the namespace."""
    expected = {"zoned": "host-managed", "chunk_sectors": str(ZONE // 512), "nr_zones": str(zones)}
    limits = nvme.cli(guest, f"zns id-ns {disk}")
    # Less one each. Linux shows them of a drive that several hosts may use since 6.9.
    equal((limits["mar"] + 1, limits["mor"] + 1), (ACTIVE, ACTIVE), "active and open zones at most")
    equal({name: queue(guest, disk, name) for name in expected}, expected, "the queue's limits")
    check(int(queue(guest, disk, "zone_append_max_bytes")) > 0, "appends are to be had")
    equal(report(guest, disk), [(zone * ZONE, capacity, 0, "em") for zone in range(zones)], "an empty device's zones")
    listed = nvme.cli(guest, f"zns report-zones {disk}")
    equal(listed["nr_zones"], zones, "zones by nvme-cli")


def is_written_in_order(guest: Guest, disk: str, capacity: int) -> None:
    """Writes go to the write pointer and nowhere else, up to the capacity."""
    write = "dd if=/bin/busybox of={} bs=64k count={} seek={} oflag=direct conv=notrunc 2>&1"
    guest.run(write.format(disk, 3, 0))
    equal(report(guest, disk, "--count 1")[0][2:], (192 * KIB, "oi"), "the zone after three writes")
    for seek in (0, 4):
        check("error" in guest.run(write.format(disk, 1, seek), fails=True), "a write elsewhere is refused")
    guest.run("dmesg -c > /dev/null")
    at = guest.run(f"nvme zns zone-append {disk} -s 0 -z 4096 -d /bin/busybox 2>&1")
    check(at.split()[-1] == f"{192 // 4:x}", f"an append tells where it went: {at}")
    equal(report(guest, disk, "--count 1")[0][2], 196 * KIB, "the zone after an append")
    same = f"cmp -n {192 * KIB} {disk} /bin/busybox && dd if={disk} bs=4k skip=48 count=1 2>/dev/null | cmp -n 4096 - /bin/busybox"
    guest.run(same)
    check(capacity % (4 * KIB) == 0, "whole blocks")


def is_managed(guest: Guest, disk: str) -> None:
    """Zones are opened, closed, finished and reset, alone and together, and only so many are active."""
    sectors = ZONE // 512
    state = lambda zone: report(guest, disk, f"--offset {zone * sectors} --count 1")[0][3]
    for action, then in (("open", "oe"), ("close", "cl"), ("finish", "fu"), ("reset", "em")):
        guest.run(f"blkzone {action} --offset {sectors} --count 1 {disk}")
        equal(state(1), then, f"the zone after {action}")
    for zone in range(1, ACTIVE):
        guest.run(f"blkzone open --offset {zone * sectors} --count 1 {disk}")
    check("Value too large" in guest.run(f"blkzone open --offset {40 * sectors} --count 1 {disk} 2>&1", fails=True), "one zone too many")
    guest.run(f"dmesg -c > /dev/null; blkzone reset {disk}")
    equal({zone[3] for zone in report(guest, disk)}, {"em"}, "zones after all were reset")


def is_a_drive_of_today(world: World, guest: Guest, port: int) -> None:
    """An emulated drive of zones has as many as the drive, and takes writes, appends and resets."""
    path = world.dir / "zn540.vsl"
    world.vsl("create", path, "--emulate", "wd-zn540-1tb", "--scale", 64)
    world.vsl("attach", path, "--name", "zn540")
    subsystem = nvme.nqn(world, "zn540")
    nvme.connect(guest, subsystem, port)
    disk = nvme.namespace(guest, subsystem)
    equal((queue(guest, disk, "zoned"), queue(guest, disk, "nr_zones"), queue(guest, disk, "max_active_zones")),
          ("host-managed", "904", str(ACTIVE)), "an emulated ZN540")
    guest.fio(disk, "--zonemode=zbd", "--rw=randwrite", "--bs=64k", "--size=48m", "--iodepth=4", "--max_open_zones=3", "--verify=crc32c", "--do_verify=1")
    guest.run(f"blkzone finish --offset 0 --count 1 {disk}; blkzone reset {disk}")
    equal({zone[3] for zone in report(guest, disk)}, {"em"}, "zones of an emulated ZN540 after all were reset")
    nvme.disconnect(guest, subsystem)


def on_btrfs(world: World, guest: Guest, device: Device, disk: str) -> bool:
    """A zoned btrfs is made, filled, rewritten, killed under, and found sound; `False` where the guest's kernel lost count meanwhile."""
    guest.run(f"blkzone reset {disk}; modprobe btrfs; mkfs.btrfs -q -O zoned -d single -m single {disk} 2>&1; mount -t btrfs {disk} /mnt", timeout=120)
    guest.fio("/mnt/file", "--direct=0", "--rw=randwrite", "--bs=16k", "--size=48m", "--fsync=64", "--verify=crc32c", "--do_verify=1")
    script = guest.start("trap '' PIPE; for i in $(seq 20); do cp /bin/busybox /mnt/copy$i; sync; done")
    killed(world, device)
    patience = time.monotonic() + 200
    while not script.ended.wait(1) and time.monotonic() < patience:
        if MISCOUNTED in guest.console.read_text(errors="replace"):
            return False
    guest.finish(script)
    guest.run(f"umount /mnt; mount -t btrfs {disk} /mnt; for i in $(seq 20); do cmp /bin/busybox /mnt/copy$i; done", timeout=120)
    guest.fio("/mnt/file", "--direct=0", "--rw=randwrite", "--bs=16k", "--size=48m", "--fsync=64", "--verify=crc32c", "--verify_only")
    said = guest.run("btrfs scrub start -B /mnt", timeout=120)
    check("no errors found" in said, said)
    guest.run("umount /mnt")
    equal(guest.errors(), [], f"errors in the log of Linux {guest.version}")
    return True
