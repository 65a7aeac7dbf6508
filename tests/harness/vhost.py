"""A guest with a device as its vhost-user-blk disk."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness.check import equal
from harness.guest import Guest
from harness.servers import Device
from harness.world import World

QUEUES = 2


def disk(world: World, device: Device) -> list[object]:
    """The device as a disk, in QEMU's words, which connects again every second when the service goes."""
    socket = world.vsl("status", device.name, "--field", "vhost_socket").out.strip()
    return ["-chardev", f"socket,id=disk,path={socket},reconnect=1", "-device", f"vhost-user-blk-pci,chardev=disk,num-queues={QUEUES}"]


@contextmanager
def boot(world: World, kernel: str, device: Device) -> Iterator[tuple[Guest, str]]:
    """A guest, and the path of its disk."""
    with Guest(world, kernel, *disk(world, device), cpus=QUEUES) as guest:
        uuid = next(d["uuid"] for d in world.servers.status()["devices"] if d["name"] == device.name)
        path = guest.disk(uuid.replace("-", "")[:20])
        queues = guest.run(f"ls /sys/block/{path.removeprefix('/dev/')}/mq").split()
        equal(len(queues), QUEUES, "queues of the disk")
        yield guest, path
