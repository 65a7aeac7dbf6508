"""create, format and sure-erase destroy nothing without a terminal to ask on and without --yes, and say what is missing; no script waits for a question; NO_COLOR holds."""

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

    # A script has its user's terminal, but its input comes from elsewhere.
    for command in ["account add ada --role viewer", f"create {world.dir}/safe.vsl --size 64MiB --encrypt", f"config {device.name} page-file on"]:
        said = at_terminal(world, f"{world.vsl_path} {command} </dev/null")
        check("there is no terminal to ask on" in said or "--yes" in said, f"vsl {command} in a script: {said}")
    wrong = f"{world.vsl_path} attach ./nosuch.vsl"
    check("\x1b[" in at_terminal(world, wrong), "errors have colours at a terminal")
    for setting in ["NO_COLOR=1", "TERM=dumb"]:
        check("\x1b[" not in at_terminal(world, f"env {setting} {wrong}"), f"no colours with {setting}")


def at_terminal(world: World, command: str) -> str:
    """What a command says at a terminal of its own, which fails."""
    return world.run("env", "TERM=xterm", "script", "--quiet", "--return", "--command", command, "/dev/null", fails=True, timeout=30).text
