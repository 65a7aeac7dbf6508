"""qemu-img converts a qcow2 image onto a device and back, compares both, sees a difference, and runs its bench."""

from harness import MIB, World, check
from harness.images import sparse_image

SIZE = 96 * MIB


def run(world: World) -> None:
    raw = sparse_image(world.dir / "image", SIZE, seed=2)
    qcow = world.dir / "image.qcow2"
    world.run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", "-c", raw, qcow)
    disk = world.device(SIZE)

    world.run("qemu-img", "convert", "-n", "-W", "-m", 8, "-f", "qcow2", "-O", "raw", qcow, disk.uri)
    world.run("qemu-img", "compare", "-f", "qcow2", "-F", "raw", qcow, disk.uri)
    world.run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", disk.uri, world.dir / "back.qcow2")
    world.run("qemu-img", "compare", "-f", "raw", "-F", "qcow2", raw, world.dir / "back.qcow2")

    world.run("qemu-io", "-f", "raw", "-c", "write -P 0x77 5M 4k", disk.uri)
    differs = world.run("qemu-img", "compare", "-f", "qcow2", "-F", "raw", qcow, disk.uri, fails=True)
    check("5242880" in differs.text, "qemu-img compare does not see the block that was changed")

    bench = ["qemu-img", "bench", "-f", "raw", "-c", 4000, "-d", 32]
    world.run(*bench, "-w", "-s", 4096, "-S", 20480, "--flush-interval=64", "--no-drain", disk.uri)
    world.run(*bench, "-s", 65536, disk.uri)
    info = world.run("qemu-img", "info", "-f", "raw", disk.uri)
    check(f"({SIZE} bytes)" in info.out, "qemu-img info gives another size")
