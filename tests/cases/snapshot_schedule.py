"""Snapshots by schedule: the first is made at once, a killed service goes on and makes none twice nor again, and makes up for what it missed; a device full of yesterday raises an alert."""

import errno
import json
import os
import re
import time

import nbd

from harness import MIB, World, check, equal
from harness.libnbd import connect
from harness.servers import Device, kill

OURS = True
SIZE = 256 * MIB


def run(world: World) -> None:
    device = world.device(SIZE)
    equal(world.vsl("snapshot", "schedule", device.name).out, "no schedule\n", "before there is one")
    said = world.vsl("snapshot", "schedule", device.name, "--hourly", "24", "--daily", "7", "--weekly", "4").out
    check(said.startswith("schedule: keeps 24 hourly, 7 daily, 4 weekly; made last: "), said)
    first = names(world, device)[0]
    check(re.fullmatch(r"weekly-\d{4}-\d\d-\d\dT\d\d:\d\dZ", first), first)
    made_by_hand = world.vsl("snapshot", "create", device.name, first.replace("weekly", "hourly"), fails=True).text
    check("a name that schedules give" in made_by_hand, made_by_hand)

    # No week ends while this runs, or hardly ever; hours do.
    said = world.vsl("snapshot", "schedule", device.name, "--weekly", "4").out
    check("keeps 4 weekly;" in said, said)

    restart(world, device)
    equal(world.vsl("snapshot", "schedule", device.name).out, said, "after a kill")
    equal(names(world, device), [first], "nothing is made twice")
    world.vsl("snapshot", "rename", device.name, first, "mine")
    restart(world, device)
    # The service looks a second after its start.
    time.sleep(3)
    equal(names(world, device), ["mine"], "what was taken away is not made again")
    restart(world, device, hours=-15 * 24)
    world.wait(lambda: "snapshot-made" in events(world, device), "what was missed to be made up")
    equal(len(names(world, device)), 2, "mine and the week's")
    made = events(world, device)
    check(made.count("snapshot-made") == 1 and ", by schedule, the first since " in made, made)

    full(world, device)
    world.vsl("snapshot", "schedule", device.name, "--off")
    equal(world.vsl("snapshot", "schedule", device.name).out, "no schedule\n", "after its end")
    equal(len(names(world, device)), 2, "they stay when it ends")


def full(world: World, device: Device) -> None:
    """Overwrites a device until it is full of yesterday."""
    h = connect(device)
    error = 0
    for number in range(2 * SIZE // MIB):
        try:
            h.pwrite(os.urandom(MIB), number * MIB % SIZE)
        except nbd.Error as failed:
            error = failed.errnum
            break
        if number == SIZE // MIB - 1:
            h.flush()
            # There was nothing that the other two could hold.
            equal(json.loads(world.vsl("--json", "snapshot", "list", device.name).out)["held_bytes"], 0, "held")
            world.vsl("snapshot", "create", device.name, "yesterday")
    equal(errno.errorcode.get(error), "ENOSPC", "what is full of yesterday")
    used = float(world.vsl("status", device.name, "--field", "room_used_percent").out)
    check(used > 95, f"{used} % are used")
    rules = lambda: {alert["rule"] for alert in json.loads(world.vsl("alerts", "--json").out)["alerts"]}  # noqa: E731
    world.wait(lambda: "room-low" in rules(), "the alert of a device full of yesterday", seconds=60)
    world.vsl("snapshot", "delete", device.name, "yesterday")
    world.wait(lambda: "room-low" not in rules(), "the alert to be over", seconds=60)


def restart(world: World, device: Device, hours: int = 0) -> None:
    """Kills the service, and begins it again as if it had made its last snapshot some hours earlier."""
    kill(device)
    kept = world.dir / "state" / "schedules.json"
    contents = json.loads(kept.read_text())
    [schedule] = contents.values()
    schedule["last"] += hours * 3600
    kept.write_text(json.dumps(contents))
    world.servers.revive(device)


def names(world: World, device: Device) -> list[str]:
    listed = json.loads(world.vsl("--json", "snapshot", "list", device.name).out)
    return [one["name"] for one in listed["snapshots"]]


def events(world: World, device: Device) -> str:
    return world.vsl("events", device.name).out
