"""detach refuses while a client is connected and says so; --force ends the client; what was written is there afterwards."""

import nbd

from harness import MIB, Failed, World, check, equal
from harness.libnbd import connect

OURS = True


def run(world: World) -> None:
    device = world.device(64 * MIB)
    h = connect(device)
    h.pwrite(b"\x01" * 4096, 0)
    refused = world.vsl("detach", device.name, fails=True)
    check("--force" in refused.text, "the refusal does not say what to do (--force)")
    check(device.name in refused.text, "the refusal does not name the device")
    equal(bytes(h.pread(4096, 0)), b"\x01" * 4096, "the client after the refusal")

    h.pwrite(b"\x02" * 4096, 4096)
    world.vsl("detach", device.name, "--force")
    try:
        h.pread(4096, 0)
        raise Failed("the client still reads after detach --force")
    except nbd.Error:
        pass
    listed = [d["name"] for d in world.servers.status()["devices"] if d["state"] == "attached"]
    check(device.name not in listed, "still attached after detach --force")

    world.vsl("attach", device.path, "--name", device.name)
    h = connect(device)
    # Answered, not flushed: detach finishes what is under way, so it is there all the same.
    equal(bytes(h.pread(8192, 0)), b"\x01" * 4096 + b"\x02" * 4096, "data after detach --force and attach")
    h.shutdown()
    del h
    world.wait(lambda: not client_count(world, device.name), "the daemon to see the client go")
    world.vsl("detach", device.name)
    absent = world.vsl("detach", "no-such-device", fails=True)
    check("no-such-device" in absent.text, "the error does not name the unknown device")


def client_count(world: World, name: str) -> int:
    """Clients of a device, by its status."""
    return sum(len(d.get("clients") or []) for d in world.servers.status()["devices"] if d["name"] == name)
