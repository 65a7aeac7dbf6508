"""down ends the daemon and its devices cleanly; up again, everything written is there; both may be said twice."""

import os

from harness import MIB, World, check, equal
from harness.libnbd import connect

OURS = True


def run(world: World) -> None:
    devices = [world.device(64 * MIB, name) for name in ["one", "two"]]
    content = {device.name: os.urandom(MIB) for device in devices}
    for device in devices:
        h = connect(device)
        h.pwrite(content[device.name], 7 * MIB)
        h.shutdown()
    pid = devices[0].server_pid()
    world.vsl("up")
    equal(devices[0].server_pid(), pid, "the daemon after a second up")

    busy = connect(devices[0])
    check("--force" in world.vsl("down", fails=True).text, "down with a client connected does not say --force")
    busy.shutdown()
    del busy
    world.vsl("down", "--force")
    world.wait(lambda: not os.path.exists(f"/proc/{pid}"), "the daemon to end")
    world.vsl("down")
    for device in devices:
        world.servers.revive(device)
        h = connect(device)
        equal(bytes(h.pread(MIB, 7 * MIB)), content[device.name], f"{device.name} after down and up")
        h.shutdown()
