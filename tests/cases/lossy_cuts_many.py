"""A hundred power cuts under devices on one file and on several, with parity and without, encrypted and plain: none loses an answered flush."""

import random

from harness import World
from harness.plant import Kind
from harness.power import cuts, finds_a_store_that_lies

OURS = True
ROOT = True
SLOW = True
LIMIT = 1800
KINDS = [
    (Kind(), 35),
    (Kind(encrypted=True), 15),
    (Kind(files=4, parity=1), 25),
    (Kind(files=5, parity=2), 15),
    (Kind(files=4, parity=1, encrypted=True), 10),
]


def run(world: World) -> None:
    seed = random.randrange(1 << 32)
    cuts(world, KINDS, seed)
    finds_a_store_that_lies(world, seed)
