"""libnbd starts `vsl serve --stdio` as its own child, and data survives from one such session to the next."""

from harness import MIB, World, equal
from harness.libnbd import nbd

OURS = True


def run(world: World) -> None:
    path = world.dir / "disk.vsl"
    world.vsl("create", path, "--size", 64 * MIB, "--yes")
    command = [str(world.vsl_path), "serve", str(path), "--stdio"]
    for session in range(3):
        h = nbd.NBD()
        h.connect_command(command)
        equal(h.get_size(), 64 * MIB, "size")
        if session:
            equal(bytes(h.pread(4096, (session - 1) * MIB)), bytes([session]) * 4096, f"what session {session} wrote")
        h.pwrite(bytes([session + 1]) * 4096, session * MIB)
        h.shutdown()
        del h  # Waits for the child: the next one needs the file's lock.
