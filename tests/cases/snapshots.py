"""Snapshots over NBD with nbdcopy and fio: what was written before one is read from it while fio overwrites the device, its difference names what changed, rolling back brings it back, and power cuts take none that was answered."""

import json

from harness import MIB, Device, World, check, equal
from harness.fio import fio
from harness.libnbd import connect
from harness.servers import kill

OURS = True
SIZE = 16 * MIB


def run(world: World) -> None:
    device = world.device(4 * SIZE)
    writes = ["--rw=randwrite", "--bs=4k", "--iodepth=8", "--verify=crc32c", f"--size={SIZE}"]
    fio(world, device, *writes, "--do_verify=0", "--randseed=1")
    world.vsl("snapshot", "create", device.name, "monday")
    yesterday, copy = world.dir / "yesterday.img", world.dir / "copy.img"
    world.run("nbdcopy", device.uri, yesterday)
    fio(world, device, *writes, "--do_verify=0", "--randseed=2")
    uri = device.uri.replace(f"/{device.name}", f"/{device.name}@monday")
    check(uri != device.uri, device.uri)
    world.run("nbdcopy", uri, copy)
    check(copy.read_bytes() == yesterday.read_bytes(), "the snapshot does not show what was copied before")
    world.run("nbdinfo", "--is", "read-only", uri)
    listed = json.loads(world.vsl("--json", "snapshot", "list", device.name).out)
    check([one["name"] for one in listed["snapshots"]] == ["monday"], listed)
    check(listed["held_bytes"] == SIZE and listed["snapshots"][0]["alone_bytes"] == SIZE, listed)
    diff = json.loads(world.vsl("--json", "snapshot", "diff", device.name, "monday").out)
    check(sum(block["size_bytes"] for block in diff["blocks"]) == SIZE, "the difference is not what was overwritten")
    check("held" in world.vsl("snapshot", "hold", device.name, "monday").out, "it is not held")
    check("is held" in world.vsl("snapshot", "delete", device.name, "monday", fails=True).text, "a held one is deleted")
    check("no terminal" in world.vsl("snapshot", "rollback", device.name, "monday", fails=True).text, "nobody was asked")
    # What a killed service answered is there, and its snapshots with it.
    kill(device)
    world.servers.revive(device)
    world.vsl("snapshot", "rollback", device.name, "monday", "--yes")
    fio(world, device, *writes, "--verify_only=1", "--randseed=1")
    world.run("nbdcopy", device.uri, copy)
    check(copy.read_bytes() == yesterday.read_bytes(), "the device does not hold what the snapshot shows")
    world.vsl("snapshot", "release", device.name, "monday")
    world.vsl("snapshot", "delete", device.name, "monday")
    world.run("nbdinfo", "--size", uri, fails=True)
    check(json.loads(world.vsl("--json", "snapshot", "list", device.name).out)["snapshots"] == [], "it is still there")
    cut(world)


def cut(world: World) -> None:
    """Every snapshot that was answered is there after a power cut, and one that the cut came before was not answered."""
    world.vsl("create", world.dir / "cut.vsl", "--size", 4 * SIZE, "--drills")
    world.vsl("attach", "cut.vsl")
    device = Device("cut", world.dir / "cut.vsl", 4 * SIZE, world.servers.uri("cut"))
    world.vsl("snapshot", "create", "cut", "first")
    for number in range(1, 4):
        handle = connect(device)
        handle.pwrite(bytes([number]) * MIB, 0)
        handle.shutdown()
        world.vsl("snapshot", "create", "cut", f"answered-{number}")
        world.vsl("drill", "cut", "power-cut", "--unsynced", "drop")
        world.vsl("drill", "cut", "power-on")
    # The store answers late, so this one is made and not answered yet when the power goes. The service goes on meanwhile.
    world.vsl("drill", "cut", "stall-die", 0, "--ms", 2000)
    asked = world.start(world.vsl_path, "snapshot", "create", "cut", "lost", log="lost.log")
    world.wait(lambda: "lost" in world.vsl("snapshot", "list", "cut").out, "the snapshot to be made")
    world.vsl("drill", "cut", "power-cut", "--unsynced", "drop")
    check(asked.wait(timeout=30) != 0, "a snapshot that was not durable was answered")
    world.vsl("drill", "cut", "power-on")
    world.vsl("drill", "cut", "undo", "all")
    listed = json.loads(world.vsl("--json", "snapshot", "list", "cut").out)["snapshots"]
    equal([one["name"] for one in listed], ["first", "answered-1", "answered-2", "answered-3"], "snapshots after power cuts")
