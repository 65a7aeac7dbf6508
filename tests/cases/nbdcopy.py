"""nbdcopy brings an image onto a device and back, over several connections, and from one device to another."""

import filecmp
import os

from harness import MIB, World, check
from harness.images import sparse_image

SIZE = 96 * MIB


def run(world: World) -> None:
    image = sparse_image(world.dir / "image", SIZE, seed=1)
    disk, twin = world.device(SIZE, "disk"), world.device(SIZE, "twin")

    world.run("nbdcopy", "--connections=4", "--requests=16", "--flush", image, disk.uri)
    world.run("nbdcopy", "--connections=4", disk.uri, world.dir / "back")
    check(filecmp.cmp(image, world.dir / "back", shallow=False), "what came back differs from the image")
    holes = SIZE - os.stat(world.dir / "back").st_blocks * 512
    check(holes > 0, "the copy has no holes: nbdcopy was told nothing of what is allocated")

    world.run("nbdcopy", "--connections=2", "--destination-is-zero", disk.uri, twin.uri)
    world.run("nbdcopy", "--synchronous", twin.uri, world.dir / "again")
    check(filecmp.cmp(image, world.dir / "again", shallow=False), "the second device differs from the image")
