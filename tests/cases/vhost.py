"""A device as the disk of a virtual machine, used by libblkio beside an NBD client, with and without the service."""

import os
import stat

from harness import MIB, World, check, equal
from harness.libnbd import connect

OURS = True


def run(world: World) -> None:
    program = world.vsl_path.parent / "blkload"
    check(os.access(program, os.X_OK), f"{program} is missing: `cargo build --bin blkload` makes it")
    world.vsl("up", "--vhost")
    device = world.device(32 * MIB)
    socket = world.vsl("status", "disk", "--field", "vhost_socket").out.strip()
    equal(stat.S_IMODE(os.stat(socket).st_mode), 0o600, "the socket's mode")
    text = world.run(program, socket, "check").out
    check(f"{32 * MIB} bytes hold" in text, text)
    # What the guest left, as an NBD client finds it.
    nbd = connect(device.uri)
    equal(bytes(nbd.pread(4096, 0)), bytes(4096), "what was discarded")
    expected = bytes([(24 * MIB // 4096 % 251) ^ 0xAA]) * 4096
    check(bytes(nbd.pread(4096, 24 * MIB)) == expected, "what was written")
    load = world.start(program, socket, "load", "read", "--seconds", "3", log="load")
    world.wait(lambda: any(c["protocol"] == "vhost" for c in clients(world)), "the guest among the clients")
    refused = world.vsl("detach", "disk", fails=True)
    check("connected" in refused.text, refused.text)
    world.vsl("detach", "disk", "--force")
    load.wait(timeout=60)
    check(not os.path.exists(socket), "the socket went with its device")
    # One device without the service.
    world.start(world.vsl_path, "serve", "memory:16MiB", "--vhost-socket", world.dir / "one.vhost", log="serve")
    world.wait((world.dir / "one.vhost").exists, "the socket")
    world.run(program, world.dir / "one.vhost", "check")


def clients(world: World) -> list[dict]:
    """Who uses the device."""
    [shown] = world.servers.status()["devices"]
    return shown.get("clients") or []
