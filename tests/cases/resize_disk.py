"""A device on a block device grows with it: it takes all that the disk has become, and no more."""

from pathlib import Path

from harness import MIB, World, check, equal
from harness.fio import fio
from harness.servers import Device

ROOT = True
OURS = True


def run(world: World) -> None:
    image = world.dir / "disk.img"
    with image.open("wb") as file:
        file.truncate(160 * MIB)
    loop = world.run("losetup", "--find", "--show", "--direct-io=on", "--sector-size", 4096, image).out.strip()
    try:
        on(world, loop, image)
    finally:
        world.vsl("down", "--force", fails=None)
        world.run("losetup", "--detach", loop, fails=None)


def on(world: World, loop: str, image: Path) -> None:
    """The device on that disk."""
    world.servers.up()
    world.vsl("create", loop, "--size", "64MiB", "--raw", "128MiB")
    world.vsl("attach", loop, "--name", "disk")
    device = Device("disk", image, 64 * MIB, world.servers.uri("disk"))
    said = world.vsl("resize", "disk", "1GiB", fails=True).text
    check("on a raw capacity of" in said, said)
    said = world.vsl("resize", "disk", "--raw", "1GiB", fails=True).text
    check("which is what its block devices have room for" in said, said)
    with image.open("r+b") as file:
        file.truncate(512 * MIB)
    world.run("losetup", "--set-capacity", loop)
    world.vsl("resize", "disk", "256MiB")
    [shown] = [one for one in world.servers.status()["devices"] if one["name"] == "disk"]
    check(shown["raw_bytes"] > 490 * MIB, f"{shown['raw_bytes']} bytes of 512 MiB are raw capacity")
    fio(world, device, "--rw=randwrite", "--bs=64k", f"--size={200 * MIB}", "--offset=50m", "--verify=crc32c", "--do_verify=1")
    world.vsl("detach", "disk")
    world.vsl("attach", loop, "--name", "disk")
    equal(int(world.run("nbdinfo", "--size", device.uri).out), 256 * MIB, "bytes after a detach")
