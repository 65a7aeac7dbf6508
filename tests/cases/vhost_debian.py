"""A whole Debian boots from a device that is its vhost-user-blk disk."""

from harness import World
from harness import debian, vhost

SLOW = True
OURS = True
LIMIT = 900


def run(world: World) -> None:
    world.servers.options = ["--vhost"]
    root = debian.device(world)
    with debian.boot(world, *vhost.disk(world, root)) as guest:
        debian.checks_out(guest, "vhost-user-blk")
