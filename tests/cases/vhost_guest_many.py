"""Many kill -9 of the service, restarts, upgrades and an outage of 60 s under fio verify in a guest over vhost-user-blk: no I/O error, nothing answered is lost."""

import random

from harness import MIB, World
from harness.guest import DISTRIBUTION
from harness.guest_restarts import many, restarts
from harness.vhost import boot

SLOW = True
OURS = True
LIMIT = 600


def run(world: World) -> None:
    world.servers.options = ["--vhost"]
    device = world.device(256 * MIB)
    with boot(world, DISTRIBUTION, device) as (guest, path):
        restarts(world, guest, device, path, many(), random.randrange(1 << 32))
