"""Requests made up from the API's description, right and wrong, the same at each run: no answer that is not described, no mistake of the service."""

from harness import World
from harness.schema import Extent
from harness.schema import run as ask

OURS = True
LIMIT = 1200


def run(world: World) -> None:
    ask(world, Extent(seconds=600, seed=1, requests=10))
