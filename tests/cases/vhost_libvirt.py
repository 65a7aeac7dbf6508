"""libvirt boots a whole Debian from a device by vhost-user-blk, by NBD, and over NVMe/TCP, with the disks that docs/vhost.md shows."""

from harness import World
from harness import debian, libvirt, nvme
from harness.guest import HOST

SLOW = True
OURS = True
LIMIT = 1500


def run(world: World) -> None:
    port = nvme.listen(world, "--vhost")
    root = debian.device(world)
    vhost = world.vsl("status", root.name, "--field", "vhost_socket").out.strip()
    disks = {
        "vhost-user-blk": libvirt.documented("vhostuser", **{"/run/openvsl/db.vhost": vhost}),
        "NBD": libvirt.documented("network", **{"/run/openvsl/nbd.sock": root.socket, "'db'": f"'{root.name}'"}),
        "NVMe/TCP": "",
    }
    for protocol, disk in disks.items():
        append = "" if disk else f"ip=dhcp nvme-root={HOST}:{port}:{nvme.nqn(world, root.name)}"
        # A guest by name: each has a console and an agent of its own.
        with debian.boot(world, append=append, name=protocol.replace("/", "-"), machine=libvirt.machine(disk)) as guest:
            debian.checks_out(guest, f"{protocol}, by libvirt")
