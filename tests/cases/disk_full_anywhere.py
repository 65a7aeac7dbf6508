"""The disk under a device is full from any write on: nothing answered is lost, errors are honest, and with room again all works."""

from harness import World
from harness.full import full_anywhere

OURS = True
ROOT = True
LIMIT = 300


def run(world: World) -> None:
    full_anywhere(world, points=8)
