"""A guest verifies what it writes, while the service that has its disk goes and comes back."""

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from harness.check import check, equal
from harness.guest import Guest, fio_command
from harness.servers import Device, kill
from harness.world import World

# One pass of fio writes all of this, in pieces of mixed sizes, and then reads it back. It flushes nothing: what was answered must be there
# after an outage all the same, because a client that saw no error will not write it again.
PASS = "8m"
PATIENCE = 60  # seconds
# An outage that a kernel, or QEMU, has to sit out.
LONG = 60  # seconds


def killed(world: World, device: Device) -> None:
    """kill -9"""
    kill(device)
    world.servers.revive(device)


def stopped(world: World, device: Device) -> None:
    """down and up"""
    world.vsl("down", "--force")
    world.servers.revive(device)


def upgraded(world: World, device: Device) -> None:
    """upgrade"""
    new = another_version(world)
    world.vsl("down", "--force")
    world.vsl_path = new
    world.servers.revive(device)
    running = Path(f"/proc/{device.server_pid()}/exe").readlink()
    equal(running, new, "the program of the service after an upgrade")


def away(world: World, device: Device) -> None:
    """outage of 60 s"""
    kill(device)
    time.sleep(LONG)
    world.servers.revive(device)


Outage = Callable[[World, Device], None]
ALL = [killed, stopped, upgraded, away]


def many() -> list[Outage]:
    """The outages of one run of the soak, in any order."""
    outages = [killed] * 40 + [stopped] * 4 + [upgraded] * 4 + [away]
    random.shuffle(outages)
    return outages


def restarts(world: World, guest: Guest, device: Device, path: str, outages: list[Outage], seed: int) -> None:
    """Each of the outages takes the service away at some moment and brings it back; fio in the guest writes and verifies `path` meanwhile."""
    print(f"seed {seed}")
    dice = random.Random(seed)
    # Each pass has a seed of its own, so that what another pass wrote fails it.
    job = fio_command(
        path, "--rw=randwrite", "--bsrange=4k-64k", f"--size={PASS}", "--iodepth=16", "--verify=crc32c", "--do_verify=1", "--randseed=$pass"
    )
    # Linux's NVMe/TCP host sends in the context of whoever submits a request, without MSG_NOSIGNAL: a process that has not ignored SIGPIPE
    # may die of a connection that ended a moment ago. The request itself is repeated.
    work = guest.start(f"trap '' PIPE; pass=0; while [ ! -e /tmp/stop ]; do pass=$((pass + 1)); {job}; done; echo $pass")

    def requests() -> int:
        check(not work.ended.is_set(), f"fio in the guest ended: {work.said[-4000:]}")
        [shown] = [d for d in world.servers.status()["devices"] if d["name"] == device.name]
        return shown["reads"] + shown["writes"]

    def goes_on(when: str) -> None:
        before = requests()
        world.wait(lambda: requests() > before, f"requests of the guest {when}", PATIENCE)

    goes_on("before the first outage")
    for number, outage in enumerate(outages):
        time.sleep(dice.uniform(0, 1))
        outage(world, device)
        goes_on(f"after outage {number + 1} of {len(outages)}, {outage.__doc__}")
    guest.run("touch /tmp/stop")
    passes = int(guest.finish(work, timeout=120))
    equal(guest.errors(), [], "errors in the guest's kernel log")
    check(passes > 0, "fio verified nothing")
    counted = Counter(outages)
    kinds = ", ".join(f"{counted[kind]} × {kind.__doc__}" for kind in ALL if counted[kind])
    print(f"figure: under fio verify in a guest (Linux {guest.version}): {kinds}; errors: 0, passes verified: {passes}")


def another_version(world: World) -> Path:
    """The program as another version of itself: at another place, and with another number, which is as long as its own."""
    number = world.vsl("--version").out.split()[1].encode()
    other = number[:-1] + (b"8" if number.endswith(b"9") else b"9")
    program = world.vsl_path.read_bytes()
    place = world.dir / f"vsl-{other.decode()}"
    # Twice in one run the two versions take turns; a program that runs cannot be written.
    place.unlink(missing_ok=True)
    place.write_bytes(program.replace(number, other))
    place.chmod(0o755)
    said = world.run(place, "--version").out.split()[1]
    equal(said, other.decode(), "the version of the new program")
    return place
