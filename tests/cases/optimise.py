"""optimise brings a device that was written at random into order while fio goes on writing and checking; stopped and begun again it holds what it held."""

from harness import MIB, World, check
from harness.fio import fio

OURS = True
SIZE = 64 * MIB


def run(world: World) -> None:
    device = world.device(2 * SIZE)
    random = ["--rw=randwrite", "--bs=4k", "--iodepth=16", "--verify=crc32c", f"--size={SIZE}"]
    fio(world, device, *random, "--do_verify=0", "--randseed=1")

    def field(name: str) -> float:
        return float(world.vsl("status", device.name, "--field", name).out)

    scattered = field("pieces_per_mib")
    check(scattered > 100, f"{scattered} pieces a MiB after random writes")
    world.vsl("optimise", device.name, "--rate", 4)
    check("% done" in world.vsl("optimise", device.name, "--rate", 8).out, "it is not under way")
    world.vsl("optimise", device.name, "--stop")
    # Another range is written meanwhile, and both are checked.
    world.vsl("optimise", device.name, "--rate", 20)
    fio(world, device, *random, f"--offset={SIZE}", "--randseed=2")
    fio(world, device, *random, "--verify_only=1", "--randseed=1")
    said = world.vsl("optimise", device.name, "--rate", 1000, "--wait").out
    check("pieces a MiB" in said, said)
    ordered = field("pieces_per_mib")
    check(ordered < scattered / 8, f"{ordered} pieces a MiB, {scattered} before")
    check(field("optimised_sectors") > 0, "nothing was moved")
    for offset, seed in [(0, 1), (SIZE, 2)]:
        fio(world, device, *random, f"--offset={offset}", "--verify_only=1", f"--randseed={seed}")
    fio(world, device, "--rw=read", "--bs=128k", f"--size={2 * SIZE}")
    check("--rate" in world.vsl("optimise", device.name, "--rate", 0, fails=True).text, "a rate of nothing is taken")
