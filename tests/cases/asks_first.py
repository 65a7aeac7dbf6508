"""create, format and sure-erase destroy nothing without a terminal to ask on and without --yes, and say what is missing."""

from harness import MIB, World, check, equal
from harness.libnbd import connect

OURS = True


def run(world: World) -> None:
    device = world.device(64 * MIB)
    connect(device).pwrite(b"\x09" * 4096, 0)
    world.vsl("detach", device.name, "--force")

    for command in ["format", "sure-erase"]:
        said = world.vsl(command, device.path, fails=True).text
        check("--yes" in said, f"vsl {command}: the refusal does not say --yes")
        check(str(device.path) in said, f"vsl {command}: the refusal does not name the device")
    taken = world.dir / "taken.img"
    taken.write_bytes(b"precious" * 4096)
    world.vsl("create", taken, "--size", 64 * MIB, fails=True)
    equal(taken.read_bytes(), b"precious" * 4096, "a file that create was pointed at")

    world.vsl("attach", device.path, "--name", device.name)
    equal(bytes(connect(device).pread(4096, 0)), b"\x09" * 4096, "data after the refusals")
    world.vsl("detach", device.name, "--force")
    world.vsl("format", device.path, "--yes")
    world.vsl("attach", device.path, "--name", device.name)
    equal(bytes(connect(device).pread(4096, 0)), bytes(4096), "data after format --yes")

    connect(device).pwrite(b"\x0a" * 4096, 0)
    world.vsl("detach", device.name, "--force")
    world.vsl("sure-erase", device.path, "--yes")
    check(b"\x0a" * 4096 not in device.path.read_bytes(), "sure-erase left data in the file")
    world.vsl("attach", device.path, "--name", device.name)
    equal(bytes(connect(device).pread(4096, 0)), bytes(4096), "data after sure-erase")
