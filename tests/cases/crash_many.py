"""kill -9 of the daemon in the middle of fio, twenty times on one device, each crash on top of the last."""

import random

from harness import World
from harness.crash import crash

SLOW = True
LIMIT = 600


def run(world: World) -> None:
    crash(world, rounds=20, seed=random.randrange(1 << 32))
