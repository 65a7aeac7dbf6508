"""Cut the power of the file system under a device in the middle of its work, bring it back, see what it kept.

The file system is crates/faultfs: what was not synced is lost, kept or torn, by a seed. The daemon is killed with it.
"""

import os
import random
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from harness.check import Failed, check
from harness.cleanup import leftovers
from harness.faultfs import FaultFs
from harness.libnbd import connect
from harness.servers import Device
from harness.stamps import BLOCK, Writer
from harness.world import MIB, World

SIZE = 96 * MIB
# What an operation of the device below may be at which the power is cut.
OPERATIONS = [["write"], ["sync"], ["write", "sync", "allocate", "punch"]]


@dataclass
class Kind:
    """A way to make a device."""

    files: int = 1
    parity: int = 0
    encrypted: bool = False

    def __str__(self) -> str:
        return f"{self.files} files, parity {self.parity}{', encrypted' if self.encrypted else ''}"


@dataclass
class Tally:
    """What all rounds together did."""

    cuts: int = 0
    in_recovery: int = 0
    requests: int = 0
    flushes: int = 0
    unsynced: int = 0
    kept: int = 0

    def __str__(self) -> str:
        return (
            f"cuts: {self.cuts} ({self.in_recovery} during recovery), violations: 0; {self.requests} requests, {self.flushes} flushes, "
            f"{self.unsynced} writes not synced when the power went, {self.kept} of them on disk all the same, whole or torn"
        )


class Plant:
    """A device on a file system whose power can be cut, and who writes to it."""

    def __init__(self, world: World, kind: Kind, seed: int, number: int = 0) -> None:
        self.world = world
        self.kind = kind
        self.dice = random.Random(seed)
        self.fs = FaultFs(world, f"fs{number}")
        self.paths = [self.fs.path / f"d{die}.vsl" for die in range(kind.files)]
        self.name = f"disk{number}"
        options: list[object] = ["--size", SIZE, "--yes"]
        if kind.files > 1:
            options += ["--parity", kind.parity]
        self.key: list[object] = []
        if kind.encrypted:
            key = world.dir / f"key{number}"
            key.write_bytes(os.urandom(64))
            key.chmod(0o600)
            self.key = ["--key-file", key]
            options += ["--encrypt", *self.key]
        world.servers.up()
        world.vsl("create", *self.paths, *options)
        world.vsl("attach", *self.paths, "--name", self.name, *self.key)
        self.device = Device(self.name, self.paths[0], SIZE, world.servers.uri(self.name))
        self.writer = Writer(SIZE // BLOCK // 4 * 3, seed)

    def work(self, seconds: float) -> int:
        """Writes until the power is cut: after a time, or at an operation of the device below. Gives the number of requests."""
        load = None
        if self.dice.random() < 0.5:
            load = self.world.start(
                "fio", "--name=load", "--ioengine=nbd", f"--uri={self.device.uri}", "--rw=randwrite", "--bsrange=4k-64k", "--iodepth=8",
                f"--offset={SIZE // 4 * 3}", f"--size={SIZE // 4}", "--time_based", "--runtime=60", "--fsync=50", log="fio.log",
            )
        if self.dice.random() < 0.5:
            # What the device has under way at once is done in another order.
            slow = self.dice.choice([["write"], ["sync"], ["write", "sync"]])
            self.fs.fault(slow, {"delay": self.dice.randint(1, 30)}, every=self.dice.randint(2, 9))
        if self.dice.random() < 0.4:
            cut = {"cut": {"torn": self.dice.randrange(1 << 32)}}
            self.fs.fault(self.dice.choice(OPERATIONS), cut, after=self.dice.randrange(200), times=1)
        is_cut = lambda: not self.fs.ask("state")["on"]  # noqa: E731
        requests = self.writer.run(lambda: connect(self.device), 24, seconds, self.cut, is_cut)
        if load:
            load.kill()
            load.wait()
        return requests

    def cut(self) -> None:
        """Cuts the power, unless it is, and kills the daemon; in either order."""
        steps = [self.cut_power, lambda: kill_all(self.world)]
        self.dice.shuffle(steps)
        for step in steps:
            step()
        self.fs.lift()

    def cut_power(self) -> None:
        """Cuts the power, unless it is."""
        if self.fs.ask("state")["on"]:
            self.fs.cut(None if self.dice.random() < 0.2 else self.dice.randrange(1 << 32))

    def cut_recovery(self) -> bool:
        """Switches the power on and cuts it again while the device is being attached; false if it was attached before."""
        self.fs.switch_on()
        on = self.dice.choice([["read"], ["write", "sync", "allocate", "punch"]])
        rule = self.fs.fault(on, {"cut": {"torn": self.dice.randrange(1 << 32)}}, after=self.dice.randrange(25), times=1)
        before = self.fs.ask("state")["cuts"]
        with open(self.world.dir / "up.log", "ab") as log:
            up = subprocess.Popen([self.world.vsl_path, "up"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if self.fs.rule(rule)["fired"]:
                break
            if up.poll() is not None and self.state() == "attached":
                break
            time.sleep(0.01)
        kill_all(self.world)
        up.wait()
        was_cut = self.fs.ask("state")["cuts"] > before
        self.cut_power()
        self.fs.lift()
        return was_cut

    def state(self) -> str | None:
        """What the daemon says of the device."""
        return self.world.servers.state(self.device)

    def recover(self) -> None:
        """Switches the power on and has the device attached again."""
        self.fs.switch_on()
        self.world.servers.revive(self.device)

    def verify(self) -> None:
        """Fails unless every sector holds what it may hold."""
        self.writer.verify(connect(self.device))

    def lose_a_file(self) -> None:
        """With parity: the device comes back without one of its files, holds everything, and rebuilds it."""
        die = self.dice.randrange(self.kind.files)
        self.fs.switch_on()
        self.paths[die].unlink()
        self.recover()
        self.verify()
        self.world.vsl("rebuild", self.name, die, "--wait", timeout=120)

    def close(self) -> None:
        """Detaches the device and ends its file system."""
        self.world.vsl("detach", self.name, "--force")
        self.world.run("umount", self.fs.path)


def kill_all(world: World) -> None:
    """Kills our daemon, and our commands too, the hard way."""

    def ours() -> list[int]:
        return [pid for pid in leftovers(world.dir) if _program(pid) == world.vsl_path]

    deadline = time.monotonic() + 30
    while pids := ours():
        check(time.monotonic() < deadline, f"processes {pids} survive SIGKILL")
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.005)


def _program(pid: int) -> Path | None:
    try:
        return Path(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return None  # It ended meanwhile, or is a zombie.


def cuts(world: World, kinds: list[tuple[Kind, int]], seed: int) -> None:
    """So many cuts on a device of each kind, every one on top of the last."""
    print(f"seed {seed}")
    dice = random.Random(seed)
    tally = Tally()
    for number, (kind, rounds) in enumerate(kinds):
        print(f"--- {kind}", flush=True)
        plant = Plant(world, kind, dice.randrange(1 << 32), number)
        for turn in range(rounds):
            tally.requests += plant.work(dice.uniform(0.3, 1.5))
            again = dice.random() < 0.3
            while again:
                again = plant.cut_recovery()
                tally.in_recovery += again
                again &= dice.random() < 0.5
            if kind.parity and dice.random() < 0.25:
                plant.lose_a_file()
            else:
                plant.recover()
            plant.verify()
            print(f"cut {turn}: {plant.fs.ask('state')['damage']}", flush=True)
        state = plant.fs.ask("state")
        tally.cuts += state["cuts"]
        tally.unsynced += state["damage"]["unsynced"]
        tally.kept += state["damage"]["kept"]
        tally.flushes += plant.writer.flushes
        plant.close()
    check(tally.flushes > 0, "no flush was ever answered: nothing was verified")
    check(tally.unsynced > 0, "everything was synced at every cut: nothing was ever lost")
    print(f"figure: {tally}", flush=True)


def finds_a_store_that_lies(world: World, seed: int) -> None:
    """The test tested: when syncs are answered and not done, it must find out."""
    for attempt in range(5):
        plant = Plant(world, Kind(), seed + attempt, 100 + attempt)
        handle = connect(plant.device)
        handle.pwrite(bytes(BLOCK), SIZE - BLOCK)
        handle.flush()
        handle.shutdown()
        plant.fs.fault(["sync"], "lost")
        plant.writer.run(lambda: connect(plant.device), 24, 0.5, lambda: None)
        kill_all(world)
        plant.fs.cut()
        plant.fs.lift()
        try:
            plant.recover()
            plant.verify()
        except Failed as failed:
            print(f"found, as it must be: {failed}", flush=True)
            return
        plant.close()
    raise Failed("syncs that were never done went unnoticed in five power cuts")
