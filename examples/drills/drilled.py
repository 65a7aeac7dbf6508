"""A file system on a drill device, whose power can be cut and come back: what the examples of this directory share.

The device is served by a service of its own in a directory of its own. `nbdfuse` shows it as a file, a loop device as a block device,
and ext4 of the running kernel is mounted on that: no kernel module of ours, and none for NBD. Needs root for the loop device and the mount.
Without a mount, what is tried uses the device over NBD by itself, and nothing needs root.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path

NEEDED = {
    "nbdfuse": "libnbd-bin",
    "fusermount3": "fuse3",
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
}


class Trouble(Exception):
    """Something that has nothing to do with what is tried."""


class Drilled:
    """The device, its file system, and its power."""

    def __init__(self, vsl: str, directory: Path, size: str, mounted: bool = True) -> None:
        os.environ["PATH"] += ":/usr/sbin:/sbin"
        if mounted and os.geteuid() != 0:
            raise Trouble("a loop device and a mount need root: run this as root")
        missing = [f"{tool} (package {package})" for tool, package in NEEDED.items() if mounted and not shutil.which(tool)]
        if not shutil.which(vsl):
            missing.append(f"{vsl} (name it with --vsl)")
        if missing:
            raise Trouble(f"not here: {', '.join(missing)}")
        self.vsl_path = vsl
        self.directory = directory
        self.environment = os.environ | {
            "OPENVSL_RUNTIME_DIR": str(directory / "run"),
            "OPENVSL_STATE_DIR": str(directory / "state"),
        }
        self.mounted = mounted
        self.mount = directory / "mnt"
        self.file = directory / "fuse" / "nbd"
        self.fuse: subprocess.Popen | None = None
        self.loop = ""
        directory.mkdir(exist_ok=True)
        self.mount.mkdir()
        self.file.parent.mkdir()
        try:
            self.vsl("up")
            self.vsl("create", directory / "db.vsl", "--size", size, "--drills")
            self.vsl("attach", directory / "db.vsl", "--name", "db")
            if mounted:
                self.connect()
                run("mkfs.ext4", "-q", "-b", 4096, self.loop)
                run("mount", self.loop, self.mount)
        except BaseException:
            # The first trouble is the one worth telling.
            with contextlib.suppress(Trouble, OSError, subprocess.SubprocessError):
                self.close()
            raise

    def vsl(self, *arguments: object) -> dict:
        """Runs `vsl` and gives what it says."""
        words = [self.vsl_path, "--json", *map(str, arguments)]
        # The service that `up` leaves behind would hold a pipe open.
        with open(self.directory / "vsl.json", "w+b") as out, open(self.directory / "vsl.err", "w+b") as error:
            code = subprocess.run(words, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=error).returncode
            out.seek(0), error.seek(0)
            if code:
                raise Trouble(f"{' '.join(words)}: {error.read().decode()}")
            text = out.read()
        return json.loads(text) if text.strip() else {}

    def uri(self) -> str:
        """The device's NBD address."""
        return self.vsl("status", "db", "--field", "uri")["devices"][0]["uri"]

    def connect(self) -> None:
        """Shows the device as a block device."""
        uri = self.uri()
        with open(self.directory / "nbdfuse.log", "ab") as log:
            self.fuse = subprocess.Popen(["nbdfuse", self.file, uri], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait(lambda: is_mounted(self.file.parent) and self.file.exists(), "nbdfuse")
        # As the device: sectors of 4096 bytes, and no cache of its own.
        self.loop = run("losetup", "--find", "--show", "--direct-io=on", "--sector-size", 4096, self.file).strip()

    def disconnect(self) -> None:
        """Takes everything down, whatever state it is in."""
        if is_mounted(self.mount):
            wait(lambda: done("umount", self.mount), f"{self.mount} to be unmounted")
        if self.loop:
            wait(lambda: done("losetup", "-d", self.loop), f"{self.loop} to be let go")
            self.loop = ""
        if self.fuse:
            # It may have ended by itself and left its mount behind, which the loop device may hold for a moment.
            mount = self.file.parent
            wait(lambda: done("fusermount3", "-u", mount) or not is_mounted(mount), "nbdfuse's mount to end")
            self.fuse.wait(timeout=30)
            self.fuse = None

    def cut_at(self, program: int, seed: int, unsynced: str) -> None:
        """The power goes when the medium is written to for this time from now."""
        self.vsl("drill", "db", "power-cut", "--at-program", program, "--seed", seed, "--unsynced", unsynced)

    def is_off(self) -> bool:
        """Whether the power is cut."""
        return self.vsl("drill", "db", "list")["powered_off"]

    def cut_now(self, seed: int, unsynced: str) -> None:
        """Cuts the power, if it is not cut yet."""
        if not self.is_off():
            self.vsl("drill", "db", "undo", "power-cut")
            self.vsl("drill", "db", "power-cut", "--seed", seed, "--unsynced", unsynced)

    def power_on(self) -> str:
        """Switches it on again and mounts the file system, as a machine does that comes back. Says what the cut did."""
        self.disconnect()
        cut = self.vsl("drill", "db", "list")["said"]
        self.vsl("drill", "db", "power-on")
        if self.mounted:
            self.connect()
            run("mount", self.loop, self.mount)
        return cut

    def close(self) -> None:
        """Ends it all."""
        try:
            self.disconnect()
        finally:
            if self.fuse:
                self.fuse.kill()
            self.vsl("down", "--force")


def is_mounted(path: Path) -> bool:
    """Whether something is mounted there, as the kernel says: asking a dead file system itself would fail."""
    return any(line.split(" ")[1] == str(path) for line in Path("/proc/self/mounts").read_text().splitlines())


def run(*command: object) -> str:
    """Runs a command that must succeed."""
    words = [str(word) for word in command]
    result = subprocess.run(words, capture_output=True, text=True, timeout=120)
    if result.returncode:
        raise Trouble(f"{' '.join(words)}: {result.stderr.strip() or result.stdout.strip()}")
    return result.stdout


def done(*command: object) -> bool:
    """Whether a command succeeds."""
    return subprocess.run([str(word) for word in command], capture_output=True, timeout=120).returncode == 0


def wait(until, what: str, seconds: float = 30) -> None:
    """Waits for something to become true."""
    deadline = time.monotonic() + seconds
    while not until():
        if time.monotonic() > deadline:
            raise Trouble(f"waited {seconds} s in vain for {what}")
        time.sleep(0.01)


def common_options(about: str, most: int) -> argparse.ArgumentParser:
    """The options that every program of this directory has; the power goes within so many writes unless another number is named."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often the power is cut (default: 5)")
    parser.add_argument("--vsl", default="vsl", help="the program")
    parser.add_argument("--seed", type=int, help="of everything that chance decides (default: another each time)")
    parser.add_argument("--most", type=int, default=most, help=f"the power goes within so many writes of the medium (default: {most})")
    parser.add_argument("--unsynced", default="random", choices=["random", "drop", "keep", "torn"], help="what becomes of what no sync covers")
    parser.add_argument("--expect-loss", action="store_true", help="succeed when something is lost, and stop there")
    parser.add_argument("--directory", type=Path, help="where to put everything, made anew (default: a temporary one, removed if all went as expected)")
    return parser


# What is done on the device, with chance as it follows from the seed: after each cut it yields whether something is wrong.
Rounds = Callable[[Drilled, random.Random], Generator[bool, None, None]]


def try_out(name: str, options: argparse.Namespace, size: str, rounds: Rounds, mounted: bool = True) -> int:
    """Makes a device of this size and cuts its power until something is wrong or the rounds are over. Gives the program's exit status."""
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    print(f"seed {seed}")
    directory = options.directory or Path(tempfile.mkdtemp(prefix="vsl-drill."))
    cuts = violations = 0
    try:
        drilled = Drilled(options.vsl, directory, size, mounted)
        with contextlib.closing(drilled), contextlib.closing(rounds(drilled, random.Random(seed))) as wrong:
            for is_wrong in wrong:
                cuts, violations = cuts + 1, violations + is_wrong
                if is_wrong:
                    break
    except (Trouble, OSError, subprocess.SubprocessError) as trouble:
        print(f"{Path(sys.argv[0]).name}: {trouble}", file=sys.stderr)
        return 2
    print(f"power cuts under {name}: {cuts}, violations: {violations}")
    if bool(violations) != options.expect_loss:
        print(f"everything is in {directory}")
        return 1
    if not options.directory:
        shutil.rmtree(directory)
    return 0
