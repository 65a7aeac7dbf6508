"""200 × kill -9 of the service under fio verify in a guest over NVMe/TCP: no I/O error, and nothing answered is lost."""

import random

from harness import MIB, World, nvme
from harness.guest import DISTRIBUTION, Guest
from harness.guest_restarts import killed, restarts

SLOW = True
OURS = True
LIMIT = 1200


def run(world: World) -> None:
    port = nvme.listen(world)
    device = world.device(256 * MIB)
    with Guest(world, DISTRIBUTION) as guest:
        subsystem = nvme.nqn(world, device.name)
        nvme.connect(guest, subsystem, port)
        path = nvme.namespace(guest, subsystem)
        restarts(world, guest, device, path, [killed] * 200, random.randrange(1 << 32))
        nvme.disconnect(guest, subsystem)
