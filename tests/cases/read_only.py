"""A device attached read-only says so, refuses every change with EPERM, and its file stays as it was."""

import errno

from harness import MIB, World, check, equal
from harness.libnbd import connect, refused

OURS = True


def run(world: World) -> None:
    device = world.device(32 * MIB)
    h = connect(device)
    h.pwrite(b"\x66" * 4096, 0)
    h.shutdown()
    del h
    world.vsl("detach", device.name, "--force")
    before = device.path.read_bytes()

    world.vsl("attach", device.path, "--name", device.name, "--read-only")
    h = connect(device, strict=False)
    check(h.is_read_only(), "the export does not say that it is read-only")
    equal(bytes(h.pread(4096, 0)), b"\x66" * 4096, "data")
    refused("a write", errno.EPERM, lambda: h.pwrite(b"\x77" * 4096, 0))
    refused("a trim", errno.EPERM, lambda: h.trim(4096, 0))
    refused("a write of zeroes", errno.EPERM, lambda: h.zero(4096, 0))
    h.flush()
    equal(bytes(h.pread(4096, 0)), b"\x66" * 4096, "data after refused changes")
    h.shutdown()
    del h
    world.vsl("detach", device.name, "--force")
    check(device.path.read_bytes() == before, "the file of a device attached read-only has changed")
