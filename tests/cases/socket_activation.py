"""libnbd hands `vsl serve` a listening socket, as systemd does (LISTEN_FDS), and talks to it over two connections."""

from harness import MIB, World, equal
from harness.libnbd import nbd

OURS = True


def run(world: World) -> None:
    path = world.dir / "disk.vsl"
    world.vsl("create", path, "--size", 64 * MIB, "--yes")
    command = [str(world.vsl_path), "serve", str(path)]
    for session in range(2):
        h = nbd.NBD()
        h.connect_systemd_socket_activation(command)
        equal(h.get_size(), 64 * MIB, "size")
        if session:
            equal(bytes(h.pread(4096, 0)), b"\x07" * 4096, "what the first session wrote")
        h.pwrite(b"\x07" * 4096, 0)
        h.flush()
        h.shutdown()
        del h
