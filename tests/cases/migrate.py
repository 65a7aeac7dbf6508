"""Devices that move to other devices while clients use them: fio verify and stamped writes over moves, killed services at any moment, the move that goes on afterwards, cancelled moves, new devices that go, and what is refused."""

import json
import os
import random
import signal
import socket
import time
from pathlib import Path
from subprocess import Popen

from harness import MIB, Device, World, check, equal
from harness.faultfs import FaultFs
from harness.fio import background_writes, fio
from harness.libnbd import connect
from harness.servers import kill
from harness.stamps import BLOCK, Block, Writer, stamped

OURS = True
LIMIT = 240
SIZE = 64 * MIB


def run(world: World) -> None:
    world.servers.up()
    world.vsl("create", world.dir / "d.vsl", "--size", SIZE, "--yes")
    world.vsl("attach", world.dir / "d.vsl", "--name", "d")
    identity = shown(world, "d")["uuid"]
    writer = Writer(SIZE // BLOCK, 7)
    refusals(world)
    moves_under_load(world, writer)
    # Files that are slow to write, so that no machine is done with a move before somebody interrupts or cancels it.
    slow = FaultFs(world, "slow")
    slow.fault(["write"], {"delay": 500})
    cancelled(world, writer, slow)
    interrupted(world, slow)
    loses_the_new_device(world)
    to_an_attached_device(world, writer)
    killed(world, writer)
    restarted(world, writer)
    encrypted(world)
    equal(shown(world, "d")["uuid"], identity, "UUID after all moves")


def moves_under_load(world: World, writer: Writer) -> None:
    """fio and a stamping client keep their connections over a move; the settings stay, and the old device is not the device any more."""
    world.vsl("config", "d", "durability", "write-through")
    world.vsl("config", "d", "queue-depth", 64)
    device = disk(world)
    begun = []

    def move() -> None:
        begun.append(world.start(world.vsl_path, "migrate", "d", world.dir / "d1.vsl", log="migrate.log"))
        fio(world, device, "--rw=randwrite", "--bsrange=4k-60k", "--blockalign=4k", "--size=48M", "--iodepth=8", "--verify=crc32c", "--do_verify=1")
        equal(begun[0].wait(60), 0, "exit status of vsl migrate")

    move()
    log = (world.dir / "migrate.log").read_text()
    check("d.vsl is detached, and no longer this device" in log, log)
    equal(shown(world, "d")["path"], str(world.dir / "d1.vsl"), "where d lies")
    settings = json.loads(world.vsl("config", "d", "--json").out)
    equal((str(settings["durability"]), str(settings["queue-depth"])), ("write-through", "64"), "settings after a move")
    said = world.vsl("attach", world.dir / "d.vsl", "--name", "other", fails=True).text
    check("was moved to another device" in said, said)
    check("moved to another device" in world.vsl("status", world.dir / "d.vsl").out, "the old half does not say so")
    world.vsl("attach", world.dir / "d.vsl", "--name", "other", "--new-identity")
    check(shown(world, "other")["uuid"] != shown(world, "d")["uuid"], "both have one UUID")
    world.vsl("detach", "other")
    os.remove(world.dir / "d.vsl")
    world.vsl("config", "d", "durability", "write-back")
    # The writer's client is there from before the move until behind it.
    anew(world, writer)
    wait_for_move(world, lambda: world.vsl("migrate", "d", world.dir / "d.vsl", "--no-wait"), writer)
    events = world.vsl("events", "d").out
    check("move-begins" in events and "moved" in events, events)
    os.remove(world.dir / "d1.vsl")


def wait_for_move(world: World, begin, writer: Writer) -> None:
    """Begins a move while a client writes stamps, and has it end under its writes; what it wrote is there afterwards."""
    moved = []
    begun = time.monotonic()

    def end() -> None:
        world.wait(lambda: state(world) == "moved", "the move to end")
        moved.append(time.monotonic() - begun)

    handles = []

    def client():
        if not handles:
            begin()
        handles.append(connect(disk(world)))
        return handles[-1]

    writer.run(client, 16, 3.0, end)
    check(moved, "the move did not end")
    for handle in handles:
        writer.verify(handle)


def interrupted(world: World, slow: FaultFs) -> None:
    """Ctrl-C ends the command and not the move."""
    writes = load(world)
    command = world.start(world.vsl_path, "migrate", "d", slow.path / "d1.vsl", log="interrupted.log")
    world.wait(lambda: state(world) == "copying", "the move to begin")
    command.send_signal(signal.SIGINT)
    equal(command.wait(30), 130, "exit status after Ctrl-C")
    check("the move to" in (world.dir / "interrupted.log").read_text(), "Ctrl-C says nothing of the move")
    writes.terminate()
    writes.wait()
    slow.lift()
    check("moved d from" in world.vsl("migrate", "d").out, "the move did not go on to its end")
    equal(shown(world, "d")["path"], str(slow.path / "d1.vsl"), "where d lies")
    os.remove(world.dir / "d.vsl")
    world.vsl("migrate", "d", world.dir / "d.vsl")
    os.remove(slow.path / "d1.vsl")


def cancelled(world: World, writer: Writer, slow: FaultFs) -> None:
    """A move that is cancelled leaves the device where it is, and nothing of itself."""
    handles = []

    def client():
        if not handles:
            world.vsl("migrate", "d", slow.path / "d1.vsl", "--no-wait")
        handles.append(connect(disk(world)))
        return handles[-1]

    def cancel() -> None:
        equal(state(world), "copying", "the state of a slow move")
        world.vsl("migrate", "d", "--cancel")

    anew(world, writer)
    writer.run(client, 16, 0.3, cancel)
    writer.verify(handles[0])
    equal(state(world), "cancelled", "the state of the move")
    equal(list(slow.path.iterdir()), [], "files that a cancelled move left")
    equal([one["name"] for one in world.servers.status()["devices"]], ["d"], "devices after a cancelled move")
    said = world.vsl("migrate", "d", "--cancel", fails=True).text
    check("not being moved any more" in said, said)


def loses_the_new_device(world: World) -> None:
    """The new device is detached by force: the old one goes on."""
    world.vsl("create", world.dir / "n.vsl", "--size", SIZE, "--yes")
    world.vsl("attach", world.dir / "n.vsl", "--name", "n")
    writes = load(world)
    world.vsl("migrate", "d", "n", "--no-wait")
    said = world.vsl("detach", "n", fails=True).text
    check("about to take the place of d" in said, said)
    world.vsl("detach", "n", "--force")
    world.wait(lambda: state(world) == "failed", "the move to fail")
    said = world.vsl("migrate", "d", fails=True).text
    check("the new device is gone" in said, said)
    check(writes.poll() is None, "the load ended with the new device")
    writes.terminate()
    writes.wait()
    check("move-failed" in world.vsl("events", "d").out, "no event says that the move failed")
    equal(shown(world, "d")["path"], str(world.dir / "d.vsl"), "where d lies")


def to_an_attached_device(world: World, writer: Writer) -> None:
    """Several files with parity take the place of one, and back: the attached device's name is free afterwards."""
    if shown_or_none(world, "n") is None:
        world.vsl("attach", world.dir / "n.vsl", "--name", "n")
    said = world.vsl("migrate", "d", "n", fails=None).text
    if "holds data" in said:
        world.vsl("migrate", "d", "n", "--force")
    equal(shown(world, "d")["path"], str(world.dir / "n.vsl"), "where d lies")
    check(shown_or_none(world, "n") is None, "the new device is still there by itself")
    os.remove(world.dir / "d.vsl")
    anew(world, writer)
    files = [world.dir / f"wide{number}.vsl" for number in range(3)]
    world.vsl("create", *files, "--size", SIZE, "--yes")
    world.vsl("attach", files[0], "--name", "wide")
    wait_for_move(world, lambda: world.vsl("migrate", "d", "wide", "--no-wait"), writer)
    equal(shown(world, "d")["files"], 3, "files of d")
    os.remove(world.dir / "n.vsl")
    world.vsl("migrate", "d", world.dir / "d.vsl")
    for file in files:
        os.remove(file)
    writer.verify(connect(disk(world)))


def killed(world: World, writer: Writer) -> None:
    """The service is killed at any moment of a move: everything is there that was answered, and the move goes on or had come to its end."""
    dice = random.Random(11)
    ends = {"copying": 0, "moved": 0}
    anew(world, writer)
    here, there = world.dir / "d.vsl", world.dir / "d1.vsl"
    for number in range(12):
        device = disk(world)
        world.vsl("migrate", "d", there, "--no-wait")
        # A third of the rounds end while it copies, the first one at once, and the others within a few milliseconds around the hand-over.
        early = number % 3 == 0
        after = number * 0.03 * dice.random() if early else 0.05 + dice.random() * 0.4

        def end() -> None:
            if not early:
                until = time.monotonic() + 20
                while state_now(world) == "copying" and time.monotonic() < until:
                    pass
                time.sleep(dice.random() * 0.012)
            kill(device)

        writer.run(lambda: connect(device), 16, after, end)
        world.servers.revive(device)
        kept = shown(world, "d")["path"]
        check(kept in (str(here), str(there)), f"d lies on {kept}")
        ends["moved" if kept == str(there) else "copying"] += 1
        writer.verify(connect(disk(world)))
        if kept == str(here):
            world.wait(lambda: state(world) == "moved", "the move to go on to its end")
            writer.verify(connect(disk(world)))
        equal([one["name"] for one in world.servers.status()["devices"]], ["d"], "devices after a move")
        said = world.vsl("attach", here, "--name", "stale", fails=True).text
        check("was moved to another device" in said, said)
        os.remove(here)
        here, there = there, here
    print("killed:", ends, flush=True)
    check(ends["copying"] > 0, "no kill came while a move was under way")
    if here != world.dir / "d.vsl":
        world.vsl("migrate", "d", world.dir / "d.vsl")
        os.remove(here)


def restarted(world: World, writer: Writer) -> None:
    """A service that stops in good order goes on with the move when it starts again."""
    writes = load(world)
    world.vsl("migrate", "d", world.dir / "d1.vsl", "--no-wait")
    world.vsl("down", "--force")
    writes.wait()
    world.servers.up()
    world.wait(lambda: state(world) == "moved", "the move to go on to its end")
    equal(shown(world, "d")["path"], str(world.dir / "d1.vsl"), "where d lies")
    # One whose new device is gone meanwhile is over.
    os.remove(world.dir / "d.vsl")
    writes = load(world)
    world.vsl("migrate", "d", world.dir / "d.vsl", "--no-wait")
    kill(disk(world))
    writes.wait()
    os.remove(world.dir / "d.vsl")
    world.servers.up()
    world.wait(lambda: shown(world, "d")["state"] == "attached", "d to be attached")
    check("move-failed" in world.vsl("events", "d").out, "no event says that the move failed")
    world.vsl("migrate", "d", world.dir / "d.vsl")
    os.remove(world.dir / "d1.vsl")


def encrypted(world: World) -> None:
    """What is encrypted stays so, unless somebody says otherwise."""
    for name in ("k1", "k2"):
        (world.dir / name).write_bytes(os.urandom(64))
        (world.dir / name).chmod(0o600)
    world.vsl("create", world.dir / "e.vsl", "--size", SIZE, "--encrypt", "--key-file", world.dir / "k1", "--yes")
    world.vsl("attach", world.dir / "e.vsl", "--name", "e", "--key-file", world.dir / "k1")
    handle = connect(world.servers.uri("e"))
    handle.pwrite(b"\x42" * MIB, 3 * MIB)
    handle.flush()
    said = world.vsl("migrate", "e", world.dir / "e1.vsl", fails=True).text
    check("e is encrypted" in said and "plain" in said, said)
    check(not (world.dir / "e1.vsl").exists(), "a file was made for a move that was refused")
    world.vsl("migrate", "e", world.dir / "e1.vsl", "--key-file", world.dir / "k2")
    equal(bytes(handle.pread(MIB, 3 * MIB)), b"\x42" * MIB, "what e holds after a move")
    check("aes" in json.dumps(shown(world, "e")).lower(), "e is not encrypted any more")
    kill(disk(world))
    del handle
    world.servers.up()
    world.wait(lambda: shown(world, "e")["state"] == "attached", "e to be attached with its new key file")
    world.vsl("migrate", "e", world.dir / "e2.vsl", "--plain")
    equal(bytes(connect(world.servers.uri("e")).pread(MIB, 3 * MIB)), b"\x42" * MIB, "what e holds in plain")
    check(b"\x42" * BLOCK in (world.dir / "e2.vsl").read_bytes(), "plain is not plain")


def refusals(world: World) -> None:
    """What cannot be moved, or moved to, is refused with the reason, and nothing has changed."""
    for name, size, options in (("small", SIZE // 2, []), ("large", 2 * SIZE, []), ("fine", SIZE, ["--sector-size", 512]), ("full", SIZE, [])):
        world.vsl("create", world.dir / f"{name}.vsl", "--size", size, *options, "--yes")
        world.vsl("attach", world.dir / f"{name}.vsl", "--name", name)
    handle = connect(world.servers.uri("full"))

    def refused(*command: object, words: str) -> None:
        said = world.vsl("migrate", *command, fails=True).text
        check(words in said, f"expected '{words}': {said}")

    refused("nowhere", world.dir / "x.vsl", words="nowhere is not attached")
    refused("d", "small", words=f"small: has {SIZE // 2} bytes")
    refused("d", "large", words=f"large: has {2 * SIZE} bytes")
    refused("d", "fine", words="sectors of 512 bytes")
    refused("d", "d", words="cannot be moved to itself")
    refused("d", world.dir / "d.vsl", words="cannot be moved to itself")
    refused("d", "full", words="1 client(s) connected")
    handle.pwrite(b"\x01" * BLOCK, 0)
    handle.shutdown()
    world.wait(lambda: not shown(world, "full").get("clients"), "the client to be gone")
    refused("d", "full", words="full: holds data")
    world.vsl("detach", "full")
    refused("d", world.dir / "full.vsl", words="exists already")
    refused("d", world.dir / "none" / "x.vsl", words="No such file")
    refused("d", "--cancel", words="d is not being moved")
    refused("d", words="d is not being moved")
    world.vsl("snapshot", "create", "d", "one")
    refused("d", world.dir / "x.vsl", words="d has 1 snapshot(s)")
    world.vsl("snapshot", "delete", "d", "one")
    world.vsl("attach", world.dir / "full.vsl", "--name", "full", "--read-only")
    refused("full", world.dir / "x.vsl", words="full takes no writes")
    world.vsl("detach", "full")
    world.vsl("attach", "memory:64MiB", "--name", "volatile")
    refused("volatile", world.dir / "x.vsl", words="volatile lives in memory")
    refused("d", "volatile", words="volatile lives in memory")
    world.vsl("detach", "volatile")
    world.vsl("create", world.dir / "m.vsl", "--size", SIZE // 2, "--yes")
    world.vsl("attach", world.dir / "m.vsl", "--name", "m")
    world.vsl("array", "create", "pair", "--level", "raid1", "small", "m")
    refused("small", world.dir / "x.vsl", words="member of the array pair")
    refused("pair", world.dir / "x.vsl", words="is an array")
    refused("d", "pair", words="is an array")
    world.vsl("array", "delete", "pair", "--yes")
    for name in ("small", "large", "fine", "m"):
        world.vsl("detach", name)
    check(not (world.dir / "x.vsl").exists(), "a refused move made a file")
    equal([one["name"] for one in world.servers.status()["devices"]], ["d"], "devices after refusals")
    # While it is being moved.
    writes = load(world)
    world.vsl("migrate", "d", world.dir / "x.vsl", "--no-wait")
    for command in (("migrate", "d", world.dir / "y.vsl"), ("migrate", "d-new", world.dir / "y.vsl"), ("detach", "d"),
                    ("resize", "d", 2 * SIZE), ("snapshot", "create", "d", "one"), ("array", "create", "x", "--level", "raid1", "d-new", "d")):
        said = world.vsl(*command, fails=True).text
        check("being moved" in said, said)
    world.vsl("migrate", "d", "--cancel")
    writes.terminate()
    writes.wait()
    check(not (world.dir / "x.vsl").exists() and not (world.dir / "y.vsl").exists(), "files of moves that came to nothing are left")


def state_now(world: World) -> str:
    """The state of the move, asked without a command in between, which would take longer than a hand-over."""
    with socket.socket(socket.AF_UNIX) as api:
        api.settimeout(10)
        api.connect(str(world.dir / "run" / "api.sock"))
        api.sendall(b"GET /api/v1/devices/d/migrate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: api.recv(65536), b""))
    return json.loads(answer[answer.index(b"{") : answer.rindex(b"}") + 1])["state"]


def fill(world: World) -> None:
    """Has all of the device hold data, so that a move takes its time."""
    handle = connect(disk(world))
    for offset in range(0, SIZE, MIB):
        handle.pwrite(b"\x5a" * MIB, offset)


def load(world: World) -> Popen:
    """Writes that go on until they are killed. Beside them, little of a device is copied at a time."""
    fill(world)
    writes = background_writes(world, disk(world), range(0, SIZE), fsync=100)
    world.wait(lambda: sum(client["requests"] for client in shown(world, "d").get("clients", [])) > 1000, "writes to arrive")
    return writes


def anew(world: World, writer: Writer) -> None:
    """The writer knows what each block of the device holds, whatever others wrote, and each holds data."""
    writer.generation += 1
    writer.kinds[writer.generation] = "data"
    writer.writes.clear()
    handle = connect(disk(world))
    for first in range(0, len(writer.blocks), 256):
        blocks = range(first, first + 256)
        handle.pwrite(b"".join(stamped(block, writer.generation) for block in blocks), first * BLOCK)
    handle.flush()
    writer.blocks = [Block([writer.generation], writer.generation) for _ in writer.blocks]


def disk(world: World) -> Device:
    return Device("d", Path(shown(world, "d")["path"]), SIZE, world.servers.uri("d"))


def state(world: World) -> str:
    done = world.vsl("--json", "migrate", "d", "--no-wait", fails=None)
    return json.loads(done.out)["state"] if done.code == 0 else "failed"


def shown(world: World, name: str) -> dict:
    return json.loads(world.vsl("status", name, "--json").out)["devices"][0]


def shown_or_none(world: World, name: str) -> dict | None:
    return next((one for one in world.servers.status()["devices"] if one["name"] == name), None)
