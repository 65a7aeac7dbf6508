"""The power of the file system under a device is cut, with what was not synced lost, kept or torn: no answered flush is lost, no write is torn."""

import random

from harness import World
from harness.plant import Kind
from harness.power import cuts, finds_a_store_that_lies

OURS = True
ROOT = True
LIMIT = 300


def run(world: World) -> None:
    seed = random.randrange(1 << 32)
    cuts(world, [(Kind(), 2), (Kind(files=4, parity=1, encrypted=True), 1)], seed)
    finds_a_store_that_lies(world, seed)
