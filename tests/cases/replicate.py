"""vsl backup --to: a device of another host's service follows one here while it is written, through kills of the copy and of the far service, and
each snapshot of the replica is one whole moment; what does not fit or is not there is refused."""

import json
import os
import random
import signal
import subprocess
import time

import nbd

from harness import MIB, World, check, equal

OURS = True
SIZE = 64 * MIB
BLOCK = 64 << 10


def run(world: World) -> None:
    world.servers.up()
    other = world.dir / "other"
    environment = ["env", f"OPENVSL_RUNTIME_DIR={other}", f"OPENVSL_STATE_DIR={other}/state"]

    def far(*arguments: object) -> str:
        return world.run(*environment, world.vsl_path, *arguments).out

    try:
        port = "127.0.0.1:0"
        shown = json.loads(far("up", "--listen", port, "--nvme-listen", port, "--json"))
        [address] = shown["web"]
        far("account", "add", "console", "--role", "operator", "--no-password")
        (world.dir / "key").write_text(far("account", "key", "console"))
        world.vsl("create", world.dir / "db.vsl", "--size", SIZE)
        world.vsl("attach", world.dir / "db.vsl")
        # Sectors of another size, and a device that is larger.
        far("create", world.dir / "db-far.vsl", "--size", SIZE + MIB, "--sector-size", 512)
        far("attach", world.dir / "db-far.vsl", "--name", "db")
        world.vsl("hosts", "add", "vault", address, "--key-file", world.dir / "key")
        refusals(world, far)
        follow(world, far)
        port = far("status", "db", "--field", "nvme_command").split(" -s ")[1].split()[0]
        outage(world, far, [address.removeprefix("http://").rstrip("/"), f"127.0.0.1:{port}"])
    finally:
        world.run(*environment, world.vsl_path, "down", "--force", fails=None)


def refusals(world: World, far) -> None:
    """What cannot be a replica."""
    check("neither an attached device nor a host" in world.vsl("backup", "db", "--to", "nowhere", fails=True).text, "no target")
    check("none" in world.vsl("backup", "db", "--to", "vault/none", fails=True).text, "no device there")
    check("has the UUID of" in world.vsl("backup", "db", "--to", "db", fails=True).text, "itself")
    world.vsl("create", world.dir / "small.vsl", "--size", SIZE // 2)
    world.vsl("attach", world.dir / "small.vsl")
    check("holds 33554432 bytes" in world.vsl("backup", "db", "--to", "small", fails=True).text, "a small one")
    world.vsl("detach", "small")
    equal(snapshots(world.vsl("--json", "snapshot", "list", "db").out), [], "snapshots that refusals left")
    with connected(far) as handle:
        handle.pwrite(b"x" * 4096, 0)
    check("no terminal to ask on" in world.vsl("backup", "db", "--to", "vault", fails=True).text, "it asks")


def follow(world: World, far) -> None:
    """Passes between writes, some of them killed in the middle."""
    numbers = random.Random(7)
    content = bytearray(SIZE)
    for number in range(8):
        # Some of it is one moment's, whole: a replica that mixed two would show both.
        scribble(world, content, numbers)
        if number == 0:
            world.vsl("backup", "db", "--to", "vault", "--yes")
        elif number % 2:
            killed = subprocess.Popen([world.vsl_path, "backup", "db", "--to", "vault/db"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(numbers.random() * 0.05)
            killed.send_signal(signal.SIGKILL)
            killed.wait()
            scribble(world, content, numbers)
        done = json.loads(world.vsl("--json", "backup", "db", "--to", "vault/db", "--keep", 3).out)
        equal((done["whole"], done["to"]), (False, "vault/db"), f"pass {number}")
        ours = snapshots(world.vsl("--json", "snapshot", "list", "db").out)
        theirs = snapshots(far("--json", "snapshot", "list", "db"))
        equal(len(ours), 1, "snapshots kept here")
        check(1 <= len(theirs) <= 3, f"moments kept there: {theirs}")
        compare(far, bytes(content), theirs[-1])
    check("is held" in world.vsl("snapshot", "delete", "db", ours[0], fails=True).text, "what the next pass needs")


def outage(world: World, far, listens: list[str]) -> None:
    """Again and again, while the device is written and the far service goes away for a while."""
    following = subprocess.Popen([world.vsl_path, "backup", "db", "--to", "vault/db", "--every", "1s"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        # A pass is whole once it says so: an outage before that ends the first one.
        check("what changed" in following.stdout.readline(), "the first pass")
        far("down", "--force")
        content = bytearray(SIZE)
        with connected(None, world.servers.uri("db")) as handle:
            handle.zero(SIZE, 0)
            content[MIB:2 * MIB] = os.urandom(MIB)
            handle.pwrite(bytes(content[MIB:2 * MIB]), MIB)
        check("the next pass tries again" in following.stderr.readline(), "an outage is told")
        far("up", "--listen", listens[0], "--nvme-listen", listens[1])
        names = lambda: snapshots(far("--json", "snapshot", "list", "db"))
        last = names()[-1]
        world.wait(lambda: names()[-1] != last, "a pass after the outage", 30)
        # Each further pass deletes the moment before, so what is compared is what the last one left.
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=20)
        compare(far, bytes(content), names()[-1])
    finally:
        following.kill()


def snapshots(listed: str) -> list[str]:
    """Their names, the oldest first."""
    return [snapshot["name"] for snapshot in json.loads(listed)["snapshots"]]


def scribble(world: World, content: bytearray, numbers: random.Random) -> None:
    """Writes and trims here."""
    with connected(None, world.servers.uri("db")) as handle:
        for _ in range(numbers.randrange(1, 100)):
            at = numbers.randrange(SIZE // BLOCK) * BLOCK
            if numbers.random() < 0.3:
                content[at:at + BLOCK] = bytes(BLOCK)
                handle.trim(BLOCK, at)
            else:
                content[at:at + BLOCK] = data = numbers.randbytes(BLOCK)
                handle.pwrite(data, at)


def compare(far, content: bytes, snapshot: str) -> None:
    """The replica, and the snapshot that its last pass made."""
    for export in ("db", f"db@{snapshot}"):
        with connected(far, export=export) as handle:
            for at in range(0, SIZE, 16 * MIB):
                check(handle.pread(16 * MIB, at) == content[at:at + 16 * MIB], f"{export} differs behind {at}")
            equal(handle.pread(MIB, SIZE), bytes(MIB), "what stands behind")


class connected:
    """A client of a device here, by its address, or of an export of the far service."""

    def __init__(self, far, uri: str | None = None, export: str = "db") -> None:
        self.uri = uri or far("status", "db", "--field", "uri").strip().replace("/db?", f"/{export}?")

    def __enter__(self) -> nbd.NBD:
        self.handle = nbd.NBD()
        self.handle.connect_uri(self.uri)
        return self.handle

    def __exit__(self, *_: object) -> None:
        self.handle.shutdown()
