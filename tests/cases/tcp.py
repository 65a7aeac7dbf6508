"""Two devices over TCP, each under its name, at the address that the status gives, and alongside the Unix socket."""

import filecmp
import socket

from harness import MIB, World, check, equal
from harness.images import sparse_image
from harness.libnbd import connect

OURS = True


def run(world: World) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    world.vsl("up", "--nbd-listen", f"127.0.0.1:{port}")
    for name in ["one", "two"]:
        device = world.device(32 * MIB, name)
        [shown] = [d for d in world.servers.status()["devices"] if d["name"] == name]
        over_tcp = shown["tcp_uri"]
        check(f":{port}" in over_tcp, f"status gives {over_tcp} as the TCP address, not port {port}")
        image = sparse_image(world.dir / name, 32 * MIB, seed=len(name) + ord(name[0]))
        world.run("nbdcopy", "--connections=3", image, over_tcp)
        world.run("nbdcopy", device.uri, world.dir / f"{name}.back")
        check(filecmp.cmp(image, world.dir / f"{name}.back", shallow=False), f"{name}: copied in over TCP, out otherwise")
        equal(connect(over_tcp).get_size(), 32 * MIB, "size over TCP")
