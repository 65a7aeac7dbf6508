"""down fails, and says why, when the last checkpoint of a device cannot be written; with the store mended all that was flushed is there."""

import os

from harness import MIB, World, check, equal
from harness.faultfs import FaultFs
from harness.libnbd import connect
from harness.plant import Plant

OURS = True
ROOT = True


def run(world: World) -> None:
    fs = FaultFs(world)
    plant = Plant(world, fs, "disk", 64 * MIB).start()
    content = os.urandom(MIB)
    h = connect(plant.device)
    h.pwrite(content, 7 * MIB)
    h.flush()
    h.pwrite(os.urandom(MIB), 9 * MIB)
    h.shutdown()
    fs.fail(["write", "sync"], "EIO")
    done = world.vsl("down", "--force", fails=True)
    for words in ["the service has stopped, but", "disk: detached, but its checkpoint was not written", "the next attach replays the log"]:
        check(words in done.err, f"no '{words}' in: {done.err}")
    world.vsl("down")
    fs.lift()
    # It is remembered, and attached with the service.
    world.servers.up()
    plant.device.uri = world.servers.uri(plant.name)
    equal(bytes(connect(plant.device).pread(MIB, 7 * MIB)), content, "what was flushed")
    # A stop without trouble says nothing of the one before.
    world.vsl("down", "--force")
