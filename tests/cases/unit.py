"""The systemd unit exposes little, and under its rules (user, no capability, its system calls) a service serves files and block devices."""

import os
import resource
import shutil
import signal
from pathlib import Path

from harness import MIB, World, check, equal
from harness.confined import start

ROOT = True
OURS = True
# Nobody: whoever it is, it may do nothing by itself.
USER = 65534
UNIT = Path(__file__).resolve().parents[2] / "packaging/openvsl.service"


def run(world: World) -> None:
    place = world.dir / "installed"
    unit = place / "openvsl.service"
    place.mkdir()
    unit.write_text(UNIT.read_text().replace("@BINDIR@/vsl", "/bin/true"))
    # 2.0 of 10, by systemd's own measure.
    world.run("systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=20", unit)
    said = world.run("systemd-analyze", "verify", "--man=no", unit).text
    check("openvsl.service" not in said, said)
    world.run("systemd-sysusers", "--dry-run", UNIT.with_suffix(".sysusers"))
    check(" openvsl " in UNIT.with_suffix(".sysusers").read_text(), "the unit's user is the one that is made")
    serves(world)


def serves(world: World) -> None:
    """A service under these rules, used by root."""
    world.dir.chmod(0o711)
    home = world.dir / "home"
    for directory in [home, home / "run", home / "state"]:
        directory.mkdir(mode=0o700)
        os.chown(directory, USER, USER)
    program = world.dir / "vsl"
    shutil.copy(world.vsl_path, program)
    program.chmod(0o755)
    places = {"OPENVSL_RUNTIME_DIR": str(home / "run"), "OPENVSL_STATE_DIR": str(home / "state")}
    environment = {**os.environ, **places}
    service = start(UNIT, USER, [str(program), "up", "--foreground"], {**environment, "RUST_BACKTRACE": "1"}, world.dir / "service.log")
    log = lambda: (world.dir / "service.log").read_text()

    def vsl(*words: object, fails: bool = False) -> str:
        return world.run("env", *(f"{name}={value}" for name, value in places.items()), program, *words, fails=fails).text

    world.wait(lambda: (home / "run/api.sock").exists() or service.poll() is not None, "the service to listen")
    equal(service.poll(), None, f"the service's end: {log()}")
    status = Path(f"/proc/{service.pid}/status").read_text()
    check("CapBnd:\t0000000000000000" in status and "Seccomp:\t2" in status, status)

    image = home / "device.vsl"
    vsl("create", image, "--size", 128 * MIB)
    os.chown(image, USER, USER)
    vsl("attach", image)
    written(world, vsl("status", "device", "--field", "uri").strip())
    # The unit's LimitMEMLOCK is what page-file support needs; where this machine's own bound is lower, that is what it says.
    may_lock = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] == resource.RLIM_INFINITY
    said = vsl("config", "device", "page-file", "on", "--yes", fails=not may_lock)
    check(may_lock or "LimitMEMLOCK=infinity" in said, said)
    said = vsl("attach", "/etc/hostname", fails=True)
    check("ermission denied" in said or "not an OpenVSL device" in said, said)
    vsl("detach", "device")

    store = home / "store"
    store.write_bytes(b"")
    os.truncate(store, 256 * MIB)
    os.chown(store, USER, USER)
    loop = world.run("losetup", "--find", "--show", store).out.strip()
    try:
        os.chown(loop, USER, USER)
        vsl("create", loop, "--size", 128 * MIB)
        vsl("attach", loop, "--name", "disk")
        written(world, vsl("status", "disk", "--field", "uri").strip())
        service.send_signal(signal.SIGTERM)
        equal(service.wait(60), 0, f"the service's end: {log()}")
        check("detached, healthy" in vsl("status", loop), "its state when it was detached")
    finally:
        os.chown(loop, 0, 0)
        world.run("losetup", "--detach", loop)
    check("ermission" not in log().split("stopped")[-1], log())


def written(world: World, uri: str) -> None:
    """An unmodified client writes and verifies."""
    world.run(
        "fio", "--name=verify", "--ioengine=nbd", f"--uri={uri}", "--rw=randwrite", "--bs=4k", "--size=32m",
        "--iodepth=16", "--fsync=64", "--verify=crc32c", "--do_verify=1",
    )
