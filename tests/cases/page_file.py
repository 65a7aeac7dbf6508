"""Page-file support: the service's memory for a device is taken and locked at once, stays as large under writes, and comes again with the next start."""

import json

from harness import MIB, World, check, equal
from harness.fio import fio

OURS = True
SIZE = 1024 * MIB


def run(world: World) -> None:
    device = world.device(SIZE)
    sectors = int(field(world, device, "sectors"))
    small = int(field(world, device, "map_memory_bytes"))
    check(small < sectors, f"{small} bytes of map memory for {sectors} sectors that hold nothing")
    equal(locked(world), 0, "KiB locked before")
    asked = world.vsl("config", device.name, "page-file", "on", fails=True).err
    worst = int(field(world, device, "worst_memory_bytes"))
    check("of memory" in asked and "--yes" in asked, f"it locks memory unasked: {asked}")
    equal(locked(world), 0, "KiB locked before it was confirmed")
    world.vsl("config", device.name, "page-file", "on", "--yes")
    for _ in range(2):
        taken = int(field(world, device, "map_memory_bytes"))
        check(taken <= worst, f"{taken} bytes taken where {worst} were announced")
        check(taken >= 4 * sectors, f"{taken} bytes of map memory for {sectors} sectors")
        check(locked(world) * 1024 >= taken, f"{locked(world)} KiB locked")
        fio(world, device, "--rw=randwrite", "--bs=4k", "--iodepth=16", f"--size={SIZE}", "--io_size=96m")
        equal(int(field(world, device, "map_memory_bytes")), taken, "map memory after 24,000 random writes")
        equal(field(world, device, "page_file"), "true", "page-file support")
        world.vsl("down")
        world.servers.up()
    world.vsl("config", device.name, "page-file", "off")
    equal(locked(world), 0, "KiB locked afterwards")


def field(world: World, device, name: str) -> str:
    return world.vsl("status", device.name, "--field", name).out.strip()


def locked(world: World) -> int:
    """Kibibytes that the kernel keeps in memory for the service."""
    pid = json.loads(world.vsl("up", "--json", fails=None).out or "{}").get("pid")
    text = open(f"/proc/{pid}/status").read()
    return int(next(line for line in text.splitlines() if line.startswith("VmLck:")).split()[1])
