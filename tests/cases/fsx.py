"""fsx exercises a device through nbdfuse with reads, writes, punched holes and syncs of any size and alignment."""

import random
from pathlib import Path

from harness import MIB, Device, World
from harness.servers import answers, uri

SLOW = True
ROOT = True
LIMIT = 300
CONFIG = """
blockmode = true
flen = 33554432
[opsize]
min = {unit}
max = 262144
align = {unit}
[weights]
truncate = 0
mapread = 0
mapwrite = 0
read = 10
write = 10
punch_hole = {punch_hole}
fsync = 0.2
fdatasync = 0.2
"""


def run(world: World) -> None:
    fsx = world.tool("fsx")
    seed = random.randrange(1 << 31)
    for sector in [512, 4096]:
        file = device_file(world, world.device(32 * MIB, f"disk{sector}", sector=sector), sector)
        # A trim need not cover parts of sectors, so holes are punched in whole ones.
        for unit, punch_hole in [(1, 0), (sector, 3)]:
            config = world.dir / "fsx.toml"
            config.write_text(CONFIG.format(unit=unit, punch_hole=punch_hole))
            # The operations follow from the seed, which the log shows: `fsx -S` replays them.
            world.run(fsx, "-q", "-f", config, "-P", world.dir, "-S", seed, "-N", 10_000, file, timeout=120)
        world.run("fusermount3", "-u", file.parent)


def device_file(world: World, device: Device, sector: int) -> Path:
    """The device as a file. nbdfuse passes on requests of any alignment; nbdkit's filter makes whole sectors of them."""
    whole = world.dir / f"whole{sector}.sock"
    nbdkit = ["nbdkit", "-f", "-U", whole, "--filter=blocksize", "nbd", f"uri={device.uri}", f"minblock={sector}"]
    world.start(*nbdkit, log="nbdkit.log")
    world.wait(lambda: answers(whole), "nbdkit")
    fuse = world.dir / f"fuse{sector}"
    fuse.mkdir()
    world.start("nbdfuse", fuse / "disk", uri(whole), log="nbdfuse.log")
    world.wait((fuse / "disk").exists, "nbdfuse")
    return fuse / "disk"
