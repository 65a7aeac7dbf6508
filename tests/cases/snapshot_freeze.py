"""A snapshot of a frozen file system needs no repair and one of a busy one does; whatever becomes of `vsl`, the file system and a guest are thawed."""

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from harness import MIB, Device, World, check, equal

ROOT = True
OURS = True
LIMIT = 180
FIFREEZE, FITHAW = 0xC0045877, 0xC0045878


def run(world: World) -> None:
    device = world.device(256 * MIB)
    fuse = world.dir / "fuse"
    fuse.touch()
    world.start("nbdfuse", fuse, device.uri, log="nbdfuse.log")
    world.wait(lambda: fuse.stat().st_size > 0, "nbdfuse")
    loop = world.run("losetup", "--find", "--show", "--direct-io=on", "--sector-size", 4096, fuse).out.strip()
    mount = world.dir / "mnt"
    mount.mkdir()
    try:
        world.run("mkfs.ext4", "-q", "-b", 4096, loop)
        world.run("mount", loop, mount)
        busy(world, device, mount)
        whatever_happens(world, device, mount)
        world.run("umount", mount)
    finally:
        world.run("umount", mount, fails=None)
        world.run("losetup", "--detach", loop, fails=None)
        world.run("fusermount3", "-u", fuse, fails=None)
    guest(world, device)


def busy(world: World, device: Device, mount: Path) -> None:
    """Files come and go, and nobody syncs."""
    stop = threading.Event()

    def work() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            (mount / f"file{number % 50}").write_bytes(os.urandom(20_000))
            if number % 10 == 0:
                os.sync()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        time.sleep(1)
        for name, options in (("busy", []), ("frozen", ["--freeze", mount])):
            time.sleep(0.5)
            equal(world.vsl("snapshot", "create", device.name, name, *options).out, f"made {name}\n", "what is said")
        time.sleep(0.5)
    finally:
        stop.set()
        worker.join(timeout=30)
    check(not worker.is_alive(), "the file system is frozen still")
    needs = {}
    for name in ("busy", "frozen"):
        copy = world.dir / f"{name}.img"
        world.run("nbdcopy", device.uri.replace(f"/{device.name}?", f"/{device.name}@{name}?"), copy)
        needs[name] = "needs_recovery" in world.run("dumpe2fs", "-h", copy).out
        said = world.run("e2fsck", "-f", "-n", copy, fails=None)
        if name == "frozen":
            equal(said.code, 0, f"e2fsck of a frozen snapshot: {said.text}")
    equal(needs, {"busy": True, "frozen": False}, "which journals must be replayed")


def is_frozen(mount: Path) -> bool:
    """Whether the file system is frozen. Whoever wrote to one that is would wait, and could not be ended."""
    directory = os.open(mount, os.O_RDONLY)
    try:
        fcntl.ioctl(directory, FIFREEZE, 0)
        fcntl.ioctl(directory, FITHAW, 0)
        return False
    except OSError as error:
        equal(error.errno, errno.EBUSY, "why it cannot be frozen")
        return True
    finally:
        os.close(directory)


def whatever_happens(world: World, device: Device, mount: Path) -> None:
    """The create fails; `vsl` dies; nobody comes back."""
    check("busy" in world.vsl("snapshot", "create", device.name, "busy", "--freeze", mount, fails=True).text, "the name is taken")
    check(not is_frozen(mount), "frozen after a create that failed")
    check("neither" in world.vsl("snapshot", "create", device.name, "no", "--freeze", "/etc/passwd", fails=True).text, "a file")
    world.run("fsfreeze", "--freeze", mount)
    said = world.vsl("snapshot", "create", device.name, "no", "--freeze", mount, fails=True).text
    check("somebody else froze it" in said, said)
    check(is_frozen(mount), "somebody else's freeze was ended")
    world.run("fsfreeze", "--unfreeze", mount)
    world.wait(lambda: not is_frozen(mount), "writes")
    for ends in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # What `vsl` starts to freeze, with a pipe whose other end is about to go.
        keeper = subprocess.Popen([world.vsl_path, "snapshot", "frozen", mount], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        equal(keeper.stdout.readline(), "frozen\n", "what it says")
        check(is_frozen(mount), "it is not frozen")
        keeper.send_signal(ends)
        time.sleep(0.2)
        check(keeper.poll() is None, "a signal ended what keeps it frozen")
        keeper.stdin.close()
        world.wait(lambda: not is_frozen(mount), f"the file system to be thawed after {ends.name}")
        equal(keeper.wait(timeout=20), 0, "its exit")
    # Nobody ends it: it ends by itself.
    waits = subprocess.Popen([world.vsl_path, "snapshot", "frozen", mount], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(waits.stdout.readline(), "frozen\n", "what it says")
    equal(waits.stdout.readline(), "late\n", "what it says in the end")
    check(not is_frozen(mount), "frozen for ever")
    waits.wait(timeout=10)


def guest(world: World, device: Device) -> None:
    """A played agent of a guest is asked to freeze and to thaw, also where the snapshot is not made."""
    path = world.dir / "agent.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    asked: list[str] = []
    state = {"frozen": 0}

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rwb") as lines:
                for line in lines:
                    request = json.loads(line.lstrip(b"\xff"))
                    what = request["execute"]
                    if what == "guest-sync-delimited":
                        lines.write(b"\xff" + json.dumps({"return": request["arguments"]["id"]}).encode() + b"\n")
                    else:
                        asked.append(what.removeprefix("guest-fsfreeze-"))
                        state["frozen"] = {"freeze": 1, "thaw": 0}.get(asked[-1], state["frozen"])
                        given = ("frozen" if state["frozen"] else "thawed") if asked[-1] == "status" else 1
                        lines.write(json.dumps({"return": given}).encode() + b"\n")
                    lines.flush()

    threading.Thread(target=serve, daemon=True).start()
    world.vsl("snapshot", "create", device.name, "guest", "--freeze", path)
    equal(asked, ["status", "freeze", "thaw"], "what the agent was asked")
    world.vsl("snapshot", "create", device.name, "guest", "--freeze", path, fails=True)
    equal(asked[3:], ["status", "freeze", "thaw"], "what the agent was asked where the name was taken")
    equal(state["frozen"], 0, "frozen")
    listener.close()
