"""The disk under a device is full from each single write of a run on: nothing answered is lost, and with room again all works."""

from harness import World
from harness.full import full_anywhere

OURS = True
ROOT = True
SLOW = True
LIMIT = 1800


def run(world: World) -> None:
    full_anywhere(world, points=None)
