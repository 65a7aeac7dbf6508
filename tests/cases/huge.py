"""A sparse device of 10 TiB attaches in a few MiB of memory, takes writes all over, and comes back after a crash."""

from pathlib import Path

from harness import GIB, MIB, World, check, equal
from harness.libnbd import connect
from harness.servers import kill

OURS = True
SIZE = 10 * 1024 * GIB


def run(world: World) -> None:
    world.vsl("up")
    small = world.device(16 * MIB, "small")
    without = resident(small.server_pid())
    device = world.device(SIZE, "huge")
    pid = device.server_pid()
    check(resident(pid) - without < 32 * MIB, f"attaching 10 TiB took {(resident(pid) - without) // MIB} MiB of memory")
    h = connect(device)
    equal(h.get_size(), SIZE, "size")
    places = [0, SIZE // 7 // 4096 * 4096, SIZE // 2, SIZE - 4096]
    for number, place in enumerate(places):
        h.pwrite(bytes([number + 1]) * 4096, place)
    h.flush()
    kill(device)
    world.servers.revive(device)
    h = connect(device)
    for number, place in enumerate(places):
        equal(bytes(h.pread(4096, place)), bytes([number + 1]) * 4096, f"block at {place}")
    h.trim(1 * GIB, SIZE // 2)
    equal(bytes(h.pread(4096, SIZE // 2)), bytes(4096), "block after a trim of 1 GiB")
    used = device.path.stat().st_blocks * 512
    # Space is taken in erase blocks, which are large on a large device.
    check(used < SIZE // 1000, f"four blocks take {used // MIB} MiB on disk")


def resident(pid: int) -> int:
    """Resident memory of a process, bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no VmRSS")
