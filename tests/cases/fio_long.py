"""fio overwrites a full device five times at random over four connections, so that all of it is groomed, and verifies every pass."""

from harness import GIB, World, check
from harness.fio import fio

SLOW = True
LIMIT = 600


def run(world: World) -> None:
    device = world.device(1 * GIB)
    result = fio(
        world, device, "--rw=randwrite", "--bs=4k", "--iodepth=32", "--numjobs=4", "--size=256M", "--offset_increment=256M",
        "--loops=5", "--verify=xxhash", "--do_verify=1", timeout=580,
    )
    check(result["write"]["io_bytes"] >= 5 * GIB, f"fio wrote only {result['write']['io_bytes']} bytes")
    if world.is_ours:
        [shown] = [d for d in world.servers.status()["devices"] if d["name"] == device.name]
        check(shown["media_written_bytes"] > 5.2 * GIB, "the groomer moved next to nothing: this did not test it")
