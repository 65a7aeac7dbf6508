"""fio overwrites a full device five times at random over four connections, so that all of it is groomed, and verifies every pass."""

from harness import GIB, World, check
from harness.fio import fio

SLOW = True
LIMIT = 600


def run(world: World) -> None:
    device = world.device(1 * GIB)
    for seed in range(5):
        # Another order in each pass: in the same order, the oldest data would always be dead when its turn comes.
        result = fio(
            world, device, "--rw=randwrite", "--bs=4k", "--iodepth=32", "--numjobs=4", "--size=256M", "--offset_increment=256M",
            f"--randseed={seed + 1}", "--randrepeat=0", "--verify=xxhash", "--do_verify=1", timeout=200,
        )
        check(result["write"]["io_bytes"] >= 1 * GIB, f"fio wrote only {result['write']['io_bytes']} bytes")
    if world.is_ours:
        [shown] = [d for d in world.servers.status()["devices"] if d["name"] == device.name]
        check(shown["groomed_bytes"] > GIB // 4, f"the groomer moved only {shown['groomed_bytes']} bytes: this did not test it")
