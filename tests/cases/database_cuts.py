"""The power goes under MariaDB and PostgreSQL without double writes on vsl-directfs: no damage, no commit lost; on a disk that tears writes there is."""

import random

from harness import World, check
from harness.databases import Database, MariaDb, Postgres, cuts
from harness.places import DirectFs, TearingDisk

ROOT = True
OURS = True
SLOW = True
LIMIT = 600
ROUNDS = 4
# Cuts of the control until it must have failed: about one of three damages it.
CONTROL = 40


def run(world: World) -> None:
    for kind in [MariaDb, Postgres]:
        soundly(world, kind, ROUNDS, random.randrange(1 << 31))
    # That double writes do help there, and PostgreSQL's control, are in the long form.
    control(world, MariaDb, random.randrange(1 << 31))


def soundly(world: World, kind: type[Database], rounds: int, seed: int) -> None:
    """On a device, without double writes."""
    print(f"seed {seed}", flush=True)
    place = DirectFs(world, kind.name)
    tried, wrong, commits = cuts(world, place, kind(world, place.path / "data", False), rounds, seed)
    check(not wrong, f"{kind.name}, cut {tried}, seed {seed}: {wrong}")
    place.unmount()
    print(f"figure: {kind.name}: {tried} power cuts, {commits} commits acknowledged, none lost, no damage", flush=True)


def control(world: World, kind: type[Database], seed: int) -> None:
    """On a disk that tears writes, without double writes: it must be damaged."""
    print(f"seed {seed}", flush=True)
    place = TearingDisk(world, f"{kind.name}-control")
    tried, wrong, _ = cuts(world, place, kind(world, place.path / "data", False), CONTROL, seed)
    check(bool(wrong), f"{kind.name}: {tried} cuts with torn writes and without double writes did no damage, seed {seed}")
    place.unmount()
    print(f"figure: {kind.name}, the control: damaged at cut {tried}: {wrong[0]}", flush=True)
