"""A device file that is attached is locked: a second attach, a serve and a format are refused and name the file and its holder."""

from harness import MIB, World, check, equal
from harness.libnbd import connect
from harness.servers import kill

OURS = True


def run(world: World) -> None:
    device = world.device(64 * MIB)
    h = connect(device)
    h.pwrite(b"\x05" * 4096, 0)
    pid = str(device.server_pid())
    attempts = [
        ["attach", device.path, "--name", "again"],
        ["serve", device.path, "--socket", world.dir / "second.sock"],
        ["format", device.path, "--yes"],
        ["sure-erase", device.path, "--yes"],
    ]
    for attempt in attempts:
        said = world.vsl(*attempt, fails=True, timeout=20).text
        check(str(device.path) in said, f"vsl {attempt[0]}: the error does not name the file")
        check(pid in said or device.name in said, f"vsl {attempt[0]}: the error does not name who holds the file")
    equal(bytes(h.pread(4096, 0)), b"\x05" * 4096, "the device after those attempts")

    # A killed holder holds nothing.
    kill(device)
    world.servers.revive(device)
    connect(device).pread(4096, 0)
