"""kill -9 of the daemon in the middle of fio, three times: what was flushed is there, no write is torn, no block is garbage."""

import random

from harness import World
from harness.crash import crash


def run(world: World) -> None:
    crash(world, rounds=3, seed=random.randrange(1 << 32))
