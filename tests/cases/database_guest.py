"""A guest that runs MariaDB and PostgreSQL without double writes on 16 KiB blocks over NVMe/TCP is killed, with the device's power or without."""

import os
import random

from harness import World, check, nvme
from harness.database_guest import GuestDisk, GuestMariaDb, GuestPostgres
from harness.databases import cuts
from harness.guest import newer_kernel

ROOT = True
OURS = True
SLOW = True
LIMIT = 14400
ROUNDS = int(os.environ.get("OPENVSL_CUTS", "4"))


def run(world: World) -> None:
    if not newer_kernel(world, "databases on 16 KiB blocks over NVMe/TCP in a guest that is killed"):
        return
    port = nvme.listen(world)
    for kind in (GuestPostgres, GuestMariaDb):
        seed = random.randrange(1 << 31)
        print(f"seed {seed}", flush=True)
        disk = GuestDisk(world, kind.name, port)
        tried, wrong, commits = cuts(world, disk, kind(world, disk), ROUNDS, seed)
        check(not wrong, f"{kind.name} in a guest, kill {tried}, seed {seed}: {wrong}")
        disk.kill()
        world.vsl("detach", kind.name)
        print(f"figure: {kind.name} in a guest: {tried} kills, {commits} commits acknowledged, none lost, no damage", flush=True)
