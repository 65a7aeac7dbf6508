"""Guests by libvirt, without its daemon: virt-qemu-run runs one machine. The disks are those that docs/vhost.md shows."""

import re
from collections.abc import Callable
from pathlib import Path

from harness.cleanup import MARK
from harness.guest import Guest

PAGE = Path(__file__).resolve().parents[2] / "docs/vhost.md"
# QEMU under this user, who may open the sockets of the service; nothing of the host is changed.
CONFIGURATION = 'user = "root"\ngroup = "root"\ndynamic_ownership = 0\nsecurity_driver = "none"\ncgroup_controllers = []\nstdio_handler = "file"\n'


def documented(kind: str, **places: object) -> str:
    """The disk of that type as the page shows it, with these places in it."""
    [disk] = re.findall(rf"<disk type='{kind}'.*?</disk>", PAGE.read_text(), re.DOTALL)
    for shown, place in places.items():
        assert shown in disk, f"{PAGE} does not show {shown}"
        disk = disk.replace(shown, str(place))
    return disk


def machine(disks: str) -> Callable[[Guest, Path], list[object]]:
    """The command for a machine with these disks."""

    def command(guest: Guest, agent: Path) -> list[object]:
        root = guest.world.dir / f"libvirt-{guest.name}"
        (root / "etc").mkdir(parents=True)
        (root / "etc/qemu.conf").write_text(CONFIGURATION)
        domain = root / "domain.xml"
        domain.write_text(f"""
<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>guest</name>
  <memory unit='MiB'>1024</memory>
  <memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>
  <vcpu>2</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>{guest.kernel}</kernel>
    <initrd>{guest.initrd}</initrd>
    <cmdline>{guest.append}</cmdline>
  </os>
  <features><acpi/></features>
  <cpu mode='maximum'/>
  <on_reboot>destroy</on_reboot>
  <devices>
    {disks}
    <interface type='user'><model type='virtio'/></interface>
    <serial type='file'><source path='{guest.console}'/></serial>
    <channel type='unix'><source mode='connect' path='{agent}'/><target type='virtio' name='agent'/></channel>
    <memballoon model='none'/>
  </devices>
  <qemu:commandline><qemu:env name='{MARK}' value='{guest.world.dir}'/></qemu:commandline>
</domain>""")
        return ["virt-qemu-run", "--root", root, domain]

    return command
