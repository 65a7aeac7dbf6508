"""200 clients hang up with 64 requests in flight, in every place; a bystander's verified I/O goes on without an error."""

import random

from harness import World
from harness.disconnects import disconnects

OURS = True


def run(world: World) -> None:
    disconnects(world, 200, random.randrange(1 << 32))
