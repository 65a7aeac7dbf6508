"""Ten times over: reads, writes and syncs of backing files fail, stop short, are slow or go wrong; nothing answered is lost."""

import random

from harness import World
from harness.faults import play_all

OURS = True
ROOT = True
SLOW = True
LIMIT = 1800


def run(world: World) -> None:
    seed = random.randrange(1 << 20)
    print(f"seed {seed}")
    play_all(world, range(seed, seed + 10))
