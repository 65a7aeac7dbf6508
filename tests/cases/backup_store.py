"""vsl backup into an object store and back: a directory and a server of Amazon's protocol, killed and resumed, increments, a part that is lost, what is refused."""

import json
import os
import signal
import subprocess
import time
import urllib.parse
from pathlib import Path

from cases.objects import bucket
from harness import MIB, World, check, equal
from harness.libnbd import connect

OURS = True
LIMIT = 200
SIZE = 128 * MIB
# More parts than are under way at once, of what does not compress.
DATA = 48 * MIB


def run(world: World) -> None:
    world.servers.up()
    endpoint, server = bucket(world)
    data = prepared(world)
    directory = world.dir / "kept by somebody"
    directory.mkdir()
    local = f"file://{urllib.parse.quote(str(directory))}"
    for store, options in (local, []), ("s3://bucket/backups", ["--endpoint", endpoint]):
        there_and_back(world, store, options, data)
    lost(world, directory, local)
    refusals(world, local, endpoint, server)


def prepared(world: World) -> bytes:
    """A device called db with two snapshots; what it holds at the second, monday."""
    data = bytearray(os.urandom(DATA) + bytes(SIZE - DATA))
    world.vsl("create", world.dir / "db.vsl", "--size", SIZE)
    world.vsl("attach", world.dir / "db.vsl")
    write(world, bytes(data[:DATA]), 0)
    world.vsl("snapshot", "create", "db", "sunday")
    data[50 * MIB:51 * MIB] = os.urandom(MIB)
    write(world, bytes(data[50 * MIB:51 * MIB]), 50 * MIB)
    world.vsl("snapshot", "create", "db", "monday")
    return bytes(data)


def write(world: World, data: bytes, at: int) -> None:
    handle = connect(world.servers.uri("db"))
    for begin in range(0, len(data), 16 * MIB):
        handle.pwrite(data[begin:begin + 16 * MIB], at + begin)
    handle.shutdown()


def there_and_back(world: World, store: str, options: list[str], data: bytes) -> None:
    """One that is killed on the way, the rest of it, what changed since; and both on another device."""
    sunday, monday = f"{store}/sunday", f"{store}/monday"
    interrupted(world, sunday, options)
    check("was interrupted" in world.vsl("backup", "verify", sunday, *options, fails=True).text, "a part passes for the whole")
    check("there is a backup or a device already" in world.vsl("backup", "db@sunday", sunday, *options, fails=True).text, "it is written over")
    check("begin a new one" in world.vsl("backup", "db@monday", sunday, "--resume", *options, fails=True).text, "another snapshot goes on")
    world.vsl("backup", "db@sunday", sunday, "--resume", *options)
    check("complete already" in world.vsl("backup", "db@sunday", sunday, "--resume", *options, fails=True).text, "resumed twice")
    done = json.loads(world.vsl("--json", "backup", "db@monday", monday, "--since", "sunday", *options).out)
    check(done["data_bytes"] <= 2 * MIB <= SIZE, f"what changed is {done['data_bytes']} bytes")
    shown = json.loads(world.vsl("--json", "backup", "verify", monday, *options).out)
    equal((shown["snapshot"], shown["since"]), ("monday", "sunday"), "what it says of itself")
    copy = world.dir / "copy.vsl"
    world.vsl("create", copy, "--size", SIZE)
    check("builds on" in world.vsl("restore", monday, copy, "--yes", *options, fails=True).text, "an increment alone")
    world.vsl("restore", sunday, monday, copy, "--yes", *options)
    world.vsl("attach", copy)
    handle = connect(world.servers.uri("copy"))
    for at in range(0, SIZE, 16 * MIB):
        check(handle.pread(16 * MIB, at) == data[at:at + 16 * MIB], f"restored from {store}: bytes at {at}")
    handle.shutdown()
    world.vsl("detach", "copy")
    copy.unlink()


def interrupted(world: World, address: str, options: list[str]) -> None:
    """Begins a backup and kills it once the store has a part of it and not all.

    Nobody reads the backup, so it cannot be made to wait halfway. It is made to run in slices too short to end in.
    """
    killed = subprocess.Popen([world.vsl_path, "backup", "db@sunday", address, *options],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(400):
            time.sleep(0.05)
            killed.send_signal(signal.SIGSTOP)
            said = subprocess.run([world.vsl_path, "backup", "verify", address, *options], capture_output=True, text=True)
            if "was interrupted" in said.stderr:
                return
            check("there is no backup" in said.stderr, f"a backup that was stopped after its first part: {said}")
            killed.send_signal(signal.SIGCONT)
        check(False, f"no part of {address} came into the store")
    finally:
        killed.kill()
        killed.wait()


def lost(world: World, directory: Path, store: str) -> None:
    """A part that somebody deleted: named, and not restored; the backup goes on in front of it."""
    address = f"{store}/sunday"
    (directory / "sunday" / "00000002.part").unlink()
    check("was interrupted" in world.vsl("backup", "verify", address, fails=True).text, "a part is lost")
    world.vsl("create", world.dir / "other.vsl", "--size", SIZE)
    check("was interrupted" in world.vsl("restore", address, world.dir / "other.vsl", "--yes", fails=True).text, "restored without a part")
    world.vsl("backup", "db@sunday", address, "--resume")
    world.vsl("backup", "verify", address)
    # One byte of a part is another.
    part = directory / "sunday" / "00000001.part"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    check("is damaged" in world.vsl("backup", "verify", address, fails=True).text, "damage")


def refusals(world: World, store: str, endpoint: str, server: subprocess.Popen) -> None:
    """Each names what is wrong, and leaves everything as it is."""
    check("there is no backup" in world.vsl("backup", "verify", f"{store}/never", fails=True).text, "nothing is there")
    check("there is no backup" in world.vsl("backup", "db@sunday", f"{store}/never", "--resume", fails=True).text, "nothing to go on with")
    check("names no bucket" in world.vsl("backup", "db@sunday", "s3:///x", fails=True).text, "no address")
    check("names no prefix" in world.vsl("backup", "db@sunday", "s3://bucket", fails=True).text, "a bucket alone")
    # In the place of a device.
    device = f"{store}/device"
    world.vsl("create", world.dir / "journal.vsl", "--size", SIZE, "--objects", device)
    check("there is a backup or a device already" in world.vsl("backup", "db@sunday", device, fails=True).text, "onto a device")
    gone = world.vsl("backup", "db@sunday", "s3://nowhere/x", "--endpoint", endpoint, fails=True)
    check("s3://nowhere/x" in gone.text and "bucket" in gone.text.lower(), gone.text)
