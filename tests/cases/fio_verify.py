"""fio writes at random in mixed sizes over four connections, overwrites included, and reads back what it wrote."""

from harness import MIB, World, check
from harness.fio import fio


def run(world: World) -> None:
    device = world.device(256 * MIB)
    result = fio(
        world, device, "--rw=randwrite", "--bsrange=4k-128k", "--bs_unaligned=0", "--iodepth=16", "--numjobs=4",
        "--size=64M", "--offset_increment=64M", "--loops=2", "--verify=crc32c", "--verify_backlog=256", "--do_verify=1",
    )
    # Two passes over four regions of 64 MiB, each written and read back.
    check(result["write"]["io_bytes"] >= 512 * MIB, f"fio wrote only {result['write']['io_bytes']} bytes")
    check(result["read"]["io_bytes"] >= 256 * MIB, f"fio verified only {result['read']['io_bytes']} bytes")
