"""A thousand power cuts each under MariaDB and PostgreSQL without double writes on vsl-directfs; on a disk that tears writes, double writes are needed."""

import os
import random

from cases.database_cuts import control, soundly
from harness import World, check
from harness.databases import MariaDb, Postgres, cuts
from harness.places import TearingDisk

ROOT = True
OURS = True
SLOW = True
LIMIT = 21600
ROUNDS = int(os.environ.get("OPENVSL_CUTS", "1000"))


def run(world: World) -> None:
    for kind in [MariaDb, Postgres]:
        seed = random.randrange(1 << 31)
        soundly(world, kind, ROUNDS, seed)
        control(world, kind, seed)
        place = TearingDisk(world, f"{kind.name}-twice")
        tried, wrong, commits = cuts(world, place, kind(world, place.path / "data", True), ROUNDS // 20, seed)
        check(not wrong, f"{kind.name} with double writes, cut {tried}, seed {seed}: {wrong}")
        place.unmount()
        print(f"figure: {kind.name}, torn writes and double writes: {tried} cuts, {commits} commits, none lost, no damage", flush=True)
