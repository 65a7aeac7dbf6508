"""10,000 clients hang up with 64 requests in flight, in every place; a bystander's verified I/O goes on without an error."""

import random

from harness import World
from harness.disconnects import disconnects

SLOW = True
OURS = True
LIMIT = 600


def run(world: World) -> None:
    disconnects(world, 10_000, random.randrange(1 << 32))
