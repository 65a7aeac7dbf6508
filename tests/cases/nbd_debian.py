"""A whole Debian boots from a device that QEMU reads over NBD."""

from harness import World
from harness import debian
from harness.guest import nbd_disk

SLOW = True
OURS = True
LIMIT = 900


def run(world: World) -> None:
    root = debian.device(world)
    with debian.boot(world, *nbd_disk(root, "root")) as guest:
        debian.checks_out(guest, "NBD")
