"""A whole Debian with systemd as a guest, whose root file system lies on a device."""

from contextlib import contextmanager
from collections.abc import Iterator
from harness.check import check, equal
from harness.guest import DEBIAN, Guest, debian_image
from harness.servers import Device
from harness.world import MIB, World

SIZE = 1536 * MIB
ROOT = "root=LABEL=openvsl-root ro"
# Without KVM a boot takes half a minute on two idle processors.
BOOT_SECONDS = 400


def device(world: World) -> Device:
    """A device that Debian lies on."""
    made = world.device(SIZE, "root")
    world.run("nbdcopy", "--target-is-zero", debian_image(world), made.uri, timeout=300)
    return made


@contextmanager
def boot(world: World, *options: object, append: str = "", **how: object) -> Iterator[Guest]:
    """Debian, up to the point where systemd says that it runs; it is shut down in the end."""
    with Guest(world, DEBIAN, *options, append=f"{ROOT} {append}", programs_disk=[], memory=1024, boot_seconds=BOOT_SECONDS, **how) as guest:
        said = guest.run("systemctl is-system-running --wait || systemctl --failed", timeout=BOOT_SECONDS).strip()
        equal(said, "running", "what systemd says of the system")
        yield guest
        equal(guest.errors(), [], "errors in the guest's kernel log")
        guest.start("systemctl poweroff")
        # The machine is off when its agent's socket closes: libvirt's virt-qemu-run outlives it.
        guest.reader.join(BOOT_SECONDS)
        check(not guest.reader.is_alive(), "the guest does not shut down")


def checks_out(guest: Guest, source: str) -> None:
    """The root is where it should be, and takes files."""
    said = guest.run("findmnt -no SOURCE /; cat /etc/os-release | grep ^PRETTY").split("\n")
    print(f"figure: booted {said[1].partition('=')[2]} with its root on {said[0]} ({source})")
    guest.fio("/root/file", "--rw=randwrite", "--bsrange=4k-64k", "--size=8m", "--iodepth=8", "--verify=crc32c", "--do_verify=1")
    guest.run("rm /root/file; sync")
