"""A whole Debian boots from a device on S3, after another host took it over with an empty journal: everything it reads comes from the store."""

from cases.objects import bucket, settle
from harness import World, check
from harness import debian
from harness.guest import debian_image, nbd_disk
from harness.servers import Device

SLOW = True
OURS = True
LIMIT = 1200


def run(world: World) -> None:
    world.servers.up()
    endpoint, _ = bucket(world)
    address = ["--objects", "s3://bucket/root", "--endpoint", endpoint]
    world.vsl("create", world.dir / "first.vsl", "--size", debian.SIZE, *address)
    world.vsl("attach", world.dir / "first.vsl", "--name", "first")
    world.run("nbdcopy", "--target-is-zero", debian_image(world), world.servers.uri("first"), timeout=300)
    settle(world, "first")
    world.vsl("detach", "first")
    journal = world.dir / "root.vsl"
    world.vsl("attach", journal, "--name", "root", *address)
    check(journal.stat().st_blocks * 512 < debian.SIZE // 16, "the journal of a device that was taken holds more than it should")
    root = Device("root", journal, debian.SIZE, world.servers.uri("root"))
    with debian.boot(world, *nbd_disk(root, "root")) as guest:
        debian.checks_out(guest, "NBD, its erase blocks in S3")
    settle(world, "root")
