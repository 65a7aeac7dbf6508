"""Memory of a server, as the system counts it and as the service tells it."""

from pathlib import Path

from harness.check import check
from harness.servers import Device
from harness.world import MIB, World

PAGE = 4096
# What the service itself comes to besides: threads, its database, what malloc keeps.
BESIDES = 48 * MIB


def resident(pid: int) -> int:
    """Memory of the process that is resident, bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def agrees(world: World, device: Device, before: int) -> int:
    """The status's memory is what the process has grown by since it had `before`, within an eighth; what it tells, bytes."""
    told = int(world.vsl("status", device.name, "--field", "memory_bytes").out)
    grown = resident(device.server_pid()) - before
    check(abs(grown - told) < BESIDES + grown // 8, f"memory_bytes is {told // MIB} MiB, the process has grown by {grown // MIB} MiB")
    return told
