"""A whole Debian boots from a device that its kernel reads over NVMe/TCP."""

from harness import World
from harness import debian, nvme
from harness.guest import HOST

SLOW = True
OURS = True
LIMIT = 900


def run(world: World) -> None:
    port = nvme.listen(world)
    root = debian.device(world)
    target = f"ip=dhcp nvme-root={HOST}:{port}:{nvme.nqn(world, root.name)}"
    with debian.boot(world, append=target) as guest:
        debian.checks_out(guest, "NVMe/TCP")
