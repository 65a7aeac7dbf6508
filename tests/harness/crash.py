"""Kill the server in the middle of its work, bring it back, see what it kept."""

import random

from harness.check import check
from harness.fio import background_writes
from harness.libnbd import connect
from harness.servers import kill
from harness.stamps import BLOCK, Writer
from harness.world import MIB, World

SIZE = 256 * MIB


def crash(world: World, rounds: int, seed: int) -> None:
    """Each round: the stamping writer on one half of a device, fio on the other, SIGKILL, attach, verify."""
    print(f"seed {seed}")
    dice = random.Random(seed)
    device = world.device(SIZE)
    writer = Writer(SIZE // 2 // BLOCK, seed)
    for number in range(rounds):
        fio = background_writes(world, device, range(SIZE // 2, SIZE), fsync=200)
        issued = writer.run(lambda: connect(device), 24, dice.uniform(1.0, 3.0), lambda: kill(device))
        print(f"round {number}: killed after {issued} requests, {writer.flushes} flushes so far", flush=True)
        check(fio.poll() is None or fio.returncode != 0, "fio did not notice that its server was killed")
        fio.kill()
        fio.wait()
        world.servers.revive(device)
        if dice.random() < 0.4:
            # The first recovery may be cut as well; the second one finds what it left.
            kill(device)
            world.servers.revive(device)
        writer.verify(connect(device))
    check(writer.flushes > 0, "no flush was ever answered: nothing was verified")
