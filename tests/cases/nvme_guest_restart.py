"""kill -9, down and up, and an upgrade of the service under fio verify in a guest over NVMe/TCP: no I/O error, and nothing answered is lost."""

import random

from harness import MIB, World, equal, nvme
from harness.guest import DISTRIBUTION, Guest
from harness.guest_restarts import killed, restarts, stopped, upgraded

OURS = True
LIMIT = 240


def run(world: World) -> None:
    port = nvme.listen(world)
    device = world.device(256 * MIB)
    with Guest(world, DISTRIBUTION) as guest:
        subsystem = nvme.nqn(world, device.name)
        controller = nvme.connect(guest, subsystem, port)
        path = nvme.namespace(guest, subsystem)
        restarts(world, guest, device, path, [killed, stopped, upgraded, killed], random.randrange(1 << 32))
        health = nvme.cli(guest, f"smart-log /dev/{controller}")
        # nvme-cli writes what has 128 bits as text.
        counts = (int(health["power_cycles"]), int(health["unsafe_shutdowns"]))
        equal(counts, (5, 2), "attaches, and those after a kill")
        nvme.disconnect(guest, subsystem)
