"""kill -9 of the service under load, a hundred times on one device on objects, each kill on top of the last."""

from cases.objects_kills import lives
from harness import World

OURS = True
SLOW = True
LIMIT = 1200


def run(world: World) -> None:
    lives(world, 100)
