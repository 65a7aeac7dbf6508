"""Many kill -9 of the service, restarts, upgrades and an outage of 60 s under fio verify in a guest whose QEMU reads over NBD: no I/O error, nothing answered is lost."""

import random

from harness import MIB, World
from harness.guest import DISTRIBUTION, Guest, nbd_disk
from harness.guest_restarts import many, restarts

SLOW = True
OURS = True
LIMIT = 600


def run(world: World) -> None:
    device = world.device(256 * MIB)
    with Guest(world, DISTRIBUTION, *nbd_disk(device, "disk")) as guest:
        restarts(world, guest, device, guest.disk("disk"), many(), random.randrange(1 << 32))
