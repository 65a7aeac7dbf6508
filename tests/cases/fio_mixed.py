"""fio reads, writes and verifies at the same time on four connections, with flushes and FUA writes in between; then it reads in large requests."""

from harness import MIB, World, check
from harness.fio import fio


def run(world: World) -> None:
    device = world.device(256 * MIB)
    fio(world, device, "--rw=write", "--bs=1M", "--iodepth=4", "--size=256M", "--verify=crc32c", "--do_verify=1")
    result = fio(
        world, device, "--rw=randrw", "--rwmixread=40", "--bs=4k", "--iodepth=32", "--numjobs=4", "--size=64M",
        "--offset_increment=64M", "--fsync=64", "--verify=xxhash", "--verify_backlog=1024",
    )
    check(result["sync"]["total_ios"] > 0, "fio sent no flush")
    check(result["read"]["io_bytes"] > 0 and result["write"]["io_bytes"] > 0, "fio did not both read and write")
    # More than all clients may hold together, read without a pause in requests that are larger than the device's.
    result = fio(world, device, "--rw=read", "--bs=4M", "--iodepth=8", "--size=256M", "--loops=4")
    check(result["read"]["io_bytes"] == 1024 * MIB, "fio did not read everything four times")
