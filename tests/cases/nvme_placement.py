"""Flexible data placement: an unmodified kernel finds the write streams of a device, and what it writes to each lies apart."""

import random
import struct

from harness import KIB, MIB, World, check, equal, nvme
from harness.guest import BACKPORTS, Guest, newer_kernel
from harness.libnbd import connect
from harness.servers import Device

OURS = True
LIMIT = 120
HANDLES = 6
BLOCK = 4 * KIB


def run(world: World) -> None:
    if not newer_kernel(world, "flexible data placement, which Linux has since 6.16"):
        return
    port = nvme.listen(world)
    device = world.device(512 * MIB)
    subsystem = nvme.nqn(world, device.name)
    with Guest(world, BACKPORTS) as guest:
        # With another policy it is a drive as any other.
        nvme.connect(guest, subsystem, port)
        equal(streams(guest, nvme.namespace(guest, subsystem)), "0", "write streams without the policy")
        nvme.disconnect(guest, subsystem)
        world.vsl("config", device.name, "groomer", "placement")
        controller = nvme.connect(guest, subsystem, port)
        path = nvme.namespace(guest, subsystem)
        equal(streams(guest, path), str(HANDLES), "write streams")
        unit = int(guest.read(f"/sys/block/{path.removeprefix('/dev/')}/queue/write_stream_granularity"))
        is_as_nvme_cli_reads_it(guest, controller, path, unit)
        lies_apart(guest, path, unit)
        check("Invalid argument" in guest.run(f"write_stream {path} {HANDLES + 1} 0 4096 1 2>&1", fails=True), "a stream that is not there")
        handle = connect(device)
        for number in range(HANDLES):
            equal(bytes(handle.pread(BLOCK, MIB * number)), bytes([number + 1]) * BLOCK, f"what was written to stream {number + 1}")
        handle.shutdown()
        # Whoever says nothing writes as before.
        guest.fio(path, "--rw=randwrite", "--bs=4k", "--size=8m", "--iodepth=16", "--verify=crc32c", "--do_verify=1")
        are_noted(guest, controller, path, device)
        is_on_a_drive_of_today(world, guest, port)
        equal(guest.errors(), [], f"errors in the log of Linux {guest.version}")


def is_on_a_drive_of_today(world: World, guest: Guest, port: int) -> None:
    """An emulated drive that has placement announces the drive's eight handles by itself."""
    path = world.dir / "pm9d3a.vsl"
    world.vsl("create", path, "--emulate", "samsung-pm9d3a-1920", "--scale", 350)
    world.vsl("attach", path, "--name", "pm9d3a")
    subsystem = nvme.nqn(world, "pm9d3a")
    nvme.connect(guest, subsystem, port)
    disk = nvme.namespace(guest, subsystem)
    equal(streams(guest, disk), "8", "write streams of an emulated PM9D3a")
    guest.run(f"write_stream {disk} 8 {MIB} {BLOCK} 7; dd if={disk} bs=4k skip=256 count=1 2>/dev/null | tr -d '\\007' | wc -c | grep -qx 0")
    nvme.disconnect(guest, subsystem)


def streams(guest: Guest, path: str) -> str:
    """How many write streams the kernel has found."""
    return guest.read(f"/sys/block/{path.removeprefix('/dev/')}/queue/max_write_streams")


def is_as_nvme_cli_reads_it(guest: Guest, controller: str, path: str, unit: int) -> None:
    """The logs and the feature, as the tool takes them apart."""
    [group] = nvme.cli(guest, f"fdp configs /dev/{controller} -e 1")["configs"]
    equal((group["nrg"], group["nruh"], group["runs"]), (1, HANDLES, unit), "one group, its handles, and the bytes of a reclaim unit")
    nvme.cli(guest, f"fdp usage /dev/{controller} -e 1")
    statistics = nvme.cli(guest, f"fdp stats /dev/{controller} -e 1")
    check(set(statistics) >= {"hbmw", "mbmw", "mbe"}, f"statistics: {statistics}")
    equal(len(left(guest, path)), HANDLES, "handles in the status")


def left(guest: Guest, path: str) -> list[int]:
    """Blocks that are left in the reclaim unit of each handle, after a flush: what it leaves empty behind a write is counted with that one."""
    guest.run(f"nvme flush {path}")
    return [handle["ruamw"] for handle in nvme.cli(guest, f"fdp status {path}")["ruhss"]]


def lies_apart(guest: Guest, path: str, unit: int) -> None:
    """Each stream is written as much as it is asked for, and no other."""
    whole = unit // BLOCK
    before = left(guest, path)
    equal(before, [whole] * HANDLES, "blocks left where nothing was written")
    for number in range(HANDLES):
        guest.run(f"write_stream {path} {number + 1} {MIB * number} {BLOCK * (number + 1)} {number + 1}")
        before = went_to(number, number + 1, before, left(guest, path))
    # More than fits in a capsule: the host sends it when it is asked to.
    guest.run(f"write_stream {path} {HANDLES} {64 * MIB} {256 * KIB} 9")
    before = went_to(HANDLES - 1, 256 * KIB // BLOCK, before, left(guest, path))
    # A handle that is given another unit has all of it before it.
    guest.run(f"nvme fdp update {path} --pids=2,4")
    after = left(guest, path)
    equal((after[2], after[4], after[3] <= before[3]), (whole, whole, True), f"blocks left after two handles were renewed: {before}, then {after}")
    guest.run(f"head -c 4096 /bin/busybox > /tmp/a; nvme write {path} -s 4096 -c 0 -z 4096 -d /tmp/a --dir-type=2 --dir-spec=3")
    went_to(3, 1, after, left(guest, path))


def are_noted(guest: Guest, controller: str, path: str, device: Device) -> None:
    """What a host and the groomer do to handles, once events of it are wanted."""
    equal(events(guest, controller, "-E"), [], "events that nobody asked for")
    for handle, kinds in [(0, "3,0x80"), (1, "0,0x80"), (2, "0x80")]:
        guest.run(f"nvme fdp set-events {path} -p {handle} -t {kinds} --enable")
    guest.run(f"nvme fdp set-events {path} -p 2 -t 0x80")
    guest.run(f"write_stream {path} 2 {MIB} {BLOCK} 2; write_stream {path} 3 {MIB} {BLOCK} 2; nvme fdp update {path} --pids=1,2")
    # Nothing was written to handle 1 since.
    guest.run(f"nvme fdp update {path} --pids=1")
    for identifier in (99, HANDLES):
        guest.run(f"nvme write {path} -s 4096 -c 0 -z 4096 -d /tmp/a --dir-type=2 --dir-spec={identifier}")
    found = [(event["type"], event["pid"]) for event in events(guest, controller, "-E")]
    equal(found, [(0, 1), (3, 99), (3, HANDLES)], "events of the host: handle 1 was given up early once, and there is no 99")
    equal(events(guest, controller, ""), [], "events of the controller, which moved nothing yet")
    # Clients that know of no placements write by handle 0.
    handle = connect(device)
    for mib in range(480):
        handle.pwrite(bytes(MIB), mib * MIB)
    chosen = random.Random(1)
    for _ in range(60_000):
        handle.pwrite(b"r" * BLOCK, chosen.randrange(480 * MIB // BLOCK) * BLOCK)
    handle.shutdown()
    moved = events(guest, controller, "")
    check(0 < len(moved) <= 63 and all(event["type"] == 0x80 and event["pid"] in (0, 1) for event in moved), f"only what was written by handles 0 and 1 is told of: {moved[:3]}")
    # The tool reads the block at another place than it has in the specification.
    page = bytes.fromhex(guest.run(f"nvme get-log /dev/{controller} --log-id=0x23 --log-len=4096 --lsi=1 --raw-binary | od -An -v -tx1"))
    told = [struct.unpack_from("<HQ", page, at + 18) for at in range(64, 64 * (1 + len(moved)), 64)]
    check(all(blocks > 0 and lba < 512 * MIB // BLOCK for blocks, lba in told), f"blocks that were moved, and the first of them: {told}")
    check(len({lba for _, lba in told}) > 1, f"not all of them begin at the same block: {told}")


def events(guest: Guest, controller: str, which: str) -> list[dict]:
    """The events of the controller, or of hosts."""
    return nvme.cli(guest, f"fdp events /dev/{controller} -e 1 {which}")["events"]


def went_to(handle: int, blocks: int, before: list[int], after: list[int]) -> list[int]:
    """So many blocks were written to one handle, which may be followed by one that is left empty where a flush came; to the others none."""
    used = [old - new for old, new in zip(before, after)]
    check(blocks <= used[handle] <= blocks + 1, f"{blocks} blocks were written to handle {handle}: {before} were left, then {after}")
    others = used[:handle] + used[handle + 1:]
    # What a flush covers of others may be padded as well.
    check(max(others) <= 1, f"only handle {handle} was written to: {before} were left, then {after}")
    return after
