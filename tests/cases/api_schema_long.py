"""Requests made up from the API's description, right and wrong, for six minutes, others at each run."""

import os
import random

from harness import World
from harness.schema import Extent
from harness.schema import run as ask

SLOW = True
OURS = True
LIMIT = 3600


def run(world: World) -> None:
    # A run that failed is had again by the seed that it printed.
    seed, seconds = (int(os.environ.get(f"API_SCHEMA_{word}", default)) for word, default in (("SEED", random.randrange(1 << 32)), ("SECONDS", 360)))
    ask(world, Extent(seconds, seed))
