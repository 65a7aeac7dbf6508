"""libnbd negotiates: list, info, an unknown export by name, two exports apart, EXPORT_NAME, and abort."""

import errno

import nbd

from harness import MIB, World, check, equal
from harness.libnbd import connect, refused

OURS = True


def run(world: World) -> None:
    disk, other = world.device(32 * MIB, "disk"), world.device(16 * MIB, "other")

    h = nbd.NBD()
    h.set_opt_mode(True)
    h.connect_unix(str(disk.socket))
    names: list[str] = []
    h.opt_list(lambda name, description: names.append(name))
    check("disk" in names, f"LIST gives {names}")
    h.set_export_name("no such export")
    refused("INFO of an unknown export", errno.ENOENT, h.opt_info)
    h.set_export_name("disk")
    h.opt_info()
    equal(h.get_size(), disk.size, "size by INFO")
    equal(h.get_block_size(nbd.SIZE_MINIMUM), 4096, "smallest block by INFO")
    h.opt_go()
    equal(bytes(h.pread(4096, 0)), bytes(4096), "a read after INFO and GO")
    h.shutdown()

    for device, content in [(disk, b"\x01" * 4096), (other, b"\x02" * 4096)]:
        connect(device).pwrite(content, 8 * MIB)
    for device, content in [(disk, b"\x01" * 4096), (other, b"\x02" * 4096)]:
        equal(bytes(connect(device).pread(4096, 8 * MIB)), content, f"export {device.name}")

    # An old client: neither GO nor structured replies.
    plain = nbd.NBD()
    plain.set_request_structured_replies(False)
    plain.set_request_block_size(False)
    plain.connect_uri(disk.uri)
    equal(bytes(plain.pread(4096, 8 * MIB)), b"\x01" * 4096, "a simple reply")

    aborted = nbd.NBD()
    aborted.set_opt_mode(True)
    aborted.connect_unix(str(disk.socket))
    aborted.opt_abort()
    equal(connect(disk).get_size(), disk.size, "size after someone else's abort")
