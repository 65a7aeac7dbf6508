"""A guest verifies what it writes, while the service that has its disk is killed or stopped and comes back."""

import random
import time
from collections.abc import Callable

from harness.check import check, equal
from harness.guest import Guest, fio_command
from harness.servers import Device, kill
from harness.world import World

# One pass of fio writes all of this, in pieces of mixed sizes, and then reads it back. It flushes nothing: what was answered must be there
# after an outage all the same, because a client that saw no error will not write it again.
PASS = "8m"
PATIENCE = 60  # seconds


def killed(world: World, device: Device) -> None:
    """An outage: kill -9, and a new service."""
    kill(device)
    world.servers.revive(device)


def stopped(world: World, device: Device) -> None:
    """An outage: the service is told to stop, as for an upgrade, and started again."""
    world.vsl("down", "--force")
    world.servers.revive(device)


def restarts(world: World, guest: Guest, device: Device, path: str, outages: list[Callable[[World, Device], None]], seed: int) -> None:
    """Each of the outages takes the service away at some moment and brings it back; fio in the guest writes and verifies `path` meanwhile."""
    print(f"seed {seed}")
    dice = random.Random(seed)
    # Each pass has a seed of its own, so that what another pass wrote fails it.
    job = fio_command(
        path, "--rw=randwrite", "--bsrange=4k-64k", f"--size={PASS}", "--iodepth=16", "--verify=crc32c", "--do_verify=1", "--randseed=$pass"
    )
    work = guest.start(f"pass=0; while [ ! -e /tmp/stop ]; do pass=$((pass + 1)); {job}; done; echo $pass")

    def requests() -> int:
        check(not work.ended.is_set(), f"fio in the guest ended: {work.said[-4000:]}")
        [shown] = [d for d in world.servers.status()["devices"] if d["name"] == device.name]
        return shown["reads"] + shown["writes"]

    def goes_on(when: str) -> None:
        before = requests()
        world.wait(lambda: requests() > before, f"requests of the guest {when}", PATIENCE)

    goes_on("before the first outage")
    for number, outage in enumerate(outages):
        time.sleep(dice.uniform(0, 1))
        outage(world, device)
        goes_on(f"after outage {number + 1} of {len(outages)}")
    guest.run("touch /tmp/stop")
    passes = int(guest.finish(work, timeout=120))
    equal(guest.errors(), [], "errors in the guest's kernel log")
    check(passes > 0, "fio verified nothing")
    print(f"figure: outages under fio verify in a guest (Linux {guest.version}): {len(outages)}, errors: 0, passes verified: {passes}")
