"""Many kill -9 of the service, restarts, upgrades and an outage of 60 s under fio verify in a guest over NVMe/TCP: no I/O error, nothing answered is lost."""

import random

from harness import MIB, World, nvme
from harness.guest import DISTRIBUTION, Guest
from harness.guest_restarts import many, restarts

SLOW = True
OURS = True
LIMIT = 600


def run(world: World) -> None:
    port = nvme.listen(world)
    device = world.device(256 * MIB)
    with Guest(world, DISTRIBUTION) as guest:
        subsystem = nvme.nqn(world, device.name)
        nvme.connect(guest, subsystem, port)
        path = nvme.namespace(guest, subsystem)
        restarts(world, guest, device, path, many(), random.randrange(1 << 32))
        nvme.disconnect(guest, subsystem)
