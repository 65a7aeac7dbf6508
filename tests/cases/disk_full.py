"""The disk under a device fills up: ENOSPC is reported, status, alerts and the log say it, acknowledged data stays readable, also after a
kill, and freed space is used."""

import errno
import json
import os

import nbd

from harness import MIB, World, check, equal
from harness.libnbd import connect
from harness.memory import agrees, resident
from harness.servers import Device, kill

OURS = True
ROOT = True


def run(world: World) -> None:
    small = world.dir / "small"
    small.mkdir()
    world.run("mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", small)
    ballast = small / "ballast"
    ballast.write_bytes(bytes(64 * MIB))
    device = world.device(256 * MIB, path=small / "disk.vsl")
    h = connect(device)
    before = resident(device.server_pid())
    kept: dict[int, bytes] = {}
    error = 0
    for number in range(256):
        content = os.urandom(MIB)
        try:
            h.pwrite(content, number * MIB)
            h.flush()
        except nbd.Error as failed:
            error = failed.errnum
            break
        kept[number] = content
    check(len(kept) > 32, f"only {len(kept)} MiB fit on 96 MiB")
    equal(errno.errorcode.get(error), "ENOSPC", f"error after {len(kept)} MiB")
    everything(h, kept, "on the full disk")
    agrees(world, device, before)
    shown = status(world, device)
    equal(shown["state"], "attached", "state on the full disk")
    for words in ["the store is full", str(small), "make room"]:
        check(words in shown["health"], f"health does not say '{words}': {shown['health']}")
    check(shown["store_full"] is True and shown["store_free_bytes"] < 16 * MIB, f"{shown}")
    check(device.name in world.vsl("status", "--errors", fails=True).out, "status --errors shows nothing")
    alerts = lambda: {alert["rule"] for alert in json.loads(world.vsl("alerts", "--json").out)["alerts"]}  # noqa: E731
    world.wait(lambda: {"store-full", "store-low"} <= alerts(), "alerts of the full disk", seconds=60)
    equal(logged(world, "the store is full"), 1, "lines in the log that it is full")
    equal(logged(world, "has room again"), 0, "lines in the log that it has room again")

    # The worst moment to crash: there is no room for anything that recovery might want to write.
    kill(device)
    world.servers.revive(device)
    everything(connect(device), kept, "after a kill on the full disk")

    ballast.unlink()
    # Nobody writes: it is noticed all the same.
    world.wait(lambda: status(world, device)["health"] == "healthy" and "store-full" not in alerts(), "health with room again")
    check(status(world, device)["store_full"] is False, "it is still called full")
    equal(logged(world, "the store is full"), 2, "lines in the log that it is full, one before the kill and one after")
    equal(logged(world, "has room again"), 1, "lines in the log that it has room again")
    h = connect(device)
    for number in range(200, 232):
        kept[number] = os.urandom(MIB)
        h.pwrite(kept[number], number * MIB)
    h.flush()
    everything(h, kept, "after space was freed")
    h.shutdown()
    del h
    world.vsl("detach", device.name, "--force")
    world.vsl("attach", device.path, "--name", device.name)
    everything(connect(device), kept, "after detach and attach")
    world.vsl("down", "--force")
    world.run("umount", small)


def status(world: World, device: Device) -> dict:
    """What `vsl status` says of the device."""
    [shown] = [d for d in world.servers.status()["devices"] if d["name"] == device.name]
    return shown


def logged(world: World, words: str) -> int:
    """How many lines of the log that are no alerts say this."""
    lines = (world.dir / "state" / "openvsl.log").read_text().splitlines()
    return sum(words in line and "alert" not in line for line in lines)


def everything(h: nbd.NBD, kept: dict[int, bytes], when: str) -> None:
    """Fails unless all that was acknowledged reads back."""
    for number, content in kept.items():
        equal(bytes(h.pread(MIB, number * MIB)), content, f"MiB {number} {when}")
