"""Cut the power of the file system under a device in the middle of its work, bring it back, see what it kept.

What was not synced is then lost, kept or torn, by a seed. The daemon is killed with it.
"""

import random
import subprocess
import time
from dataclasses import dataclass

from harness.check import Failed, check
from harness.faultfs import FaultFs
from harness.fio import background_writes
from harness.libnbd import connect
from harness.plant import Kind, Plant, kill_all
from harness.stamps import BLOCK, Writer
from harness.world import MIB, World

SIZE = 96 * MIB
# What an operation of the device below may be at which the power is cut.
OPERATIONS = [["write"], ["sync"], ["write", "sync", "allocate", "punch"]]
# So many rounds more: a cut in two comes right behind a sync.
SPARE = 12


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


class Victim:
    """A device and who writes to it."""

    def __init__(self, world: World, kind: Kind, seed: int, number: int = 0) -> None:
        self.world = world
        self.dice = random.Random(seed)
        self.fs = FaultFs(world, f"fs{number}")
        self.plant = Plant(world, self.fs, f"disk{number}", SIZE, kind).start()
        self.writer = Writer(SIZE // BLOCK // 4 * 3, seed)

    def work(self, seconds: float) -> int:
        """Writes until the power is cut: after a time, or at an operation of the device below. Gives the number of requests."""
        load = None
        if self.dice.random() < 0.5:
            load = background_writes(self.world, self.plant.device, range(SIZE // 4 * 3, SIZE), fsync=50, jobs=1, depth=8)
        if self.dice.random() < 0.5:
            # What the device has under way at once is done in another order.
            slow = self.dice.choice([["write"], ["sync"], ["write", "sync"]])
            self.fs.fault(slow, {"delay": self.dice.randint(1, 30)}, every=self.dice.randint(1, 9))
        if self.dice.random() < 0.6:
            # Instead of an operation, or right behind one: what was answered because of it must have been on disk by then.
            cut = {self.dice.choice(["cut", "cut_after"]): {"torn": self.dice.randrange(1 << 32)}}
            self.fs.fault(self.dice.choice(OPERATIONS), cut, after=self.dice.randrange(200), times=1)
        requests = self.writer.run(lambda: connect(self.plant.device), 24, seconds, self.cut, lambda: not self.fs.ask("state")["on"])
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
        with open(self.world.dir / "up.log", "ab") as log:
            up = subprocess.Popen([self.world.vsl_path, "up"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        attached = fired = False
        while not attached and not fired:
            check(time.monotonic() < deadline, "the device is neither attached nor cut off")
            time.sleep(0.01)
            fired = self.fs.rule(rule)["fired"]
            attached = up.poll() is not None and self.world.servers.state(self.plant.device) == "attached"
        kill_all(self.world)
        up.wait()
        self.cut_power()
        self.fs.lift()
        return not attached

    def verify(self) -> None:
        """Fails unless every sector holds what it may hold."""
        self.writer.verify(connect(self.plant.device))

    def lose_a_file(self) -> None:
        """With parity: the device comes back without one of its files, holds everything, and rebuilds it."""
        die = self.dice.randrange(self.plant.kind.files)
        self.fs.switch_on()
        self.plant.paths[die].unlink()
        self.plant.recover()
        self.verify()
        self.world.vsl("rebuild", self.plant.name, die, "--wait", timeout=120)

    def close(self) -> None:
        """Detaches the device and ends its file system."""
        self.plant.detach()
        self.world.run("umount", self.fs.path)


def cuts(world: World, kinds: list[tuple[Kind, int]], seed: int) -> None:
    """So many cuts on a device of each kind, every one on top of the last.

    On the last kind more, until a flush was answered and a cut met a write that was not synced.
    """
    print(f"seed {seed}")
    dice = random.Random(seed)
    tally = Tally()
    for number, (kind, rounds) in enumerate(kinds):
        print(f"--- {kind}", flush=True)
        victim = Victim(world, kind, dice.randrange(1 << 32), number)
        last = number == len(kinds) - 1
        unsynced = turn = 0
        while turn < rounds or (last and turn < rounds + SPARE and not (tally.unsynced + unsynced and tally.flushes + victim.writer.flushes)):
            tally.requests += victim.work(dice.uniform(0.3, 1.5))
            while dice.random() < 0.3:
                tally.in_recovery += victim.cut_recovery()
            if kind.parity and dice.random() < 0.25:
                victim.lose_a_file()
            else:
                victim.plant.recover()
            victim.verify()
            damage = victim.fs.ask("state")["damage"]
            unsynced = damage["unsynced"]
            print(f"cut {turn}: {damage}", flush=True)
            turn += 1
        state = victim.fs.ask("state")
        tally.cuts += state["cuts"]
        tally.unsynced += unsynced
        tally.kept += state["damage"]["kept"]
        tally.flushes += victim.writer.flushes
        victim.close()
    check(tally.flushes > 0, "no flush was ever answered: nothing was verified")
    check(tally.unsynced > 0, "everything was synced at every cut: nothing was ever lost")
    print(f"figure: {tally}", flush=True)


def finds_a_store_that_lies(world: World, seed: int) -> None:
    """The test tested: when syncs are answered and not done, it must find out."""
    for attempt in range(5):
        victim = Victim(world, Kind(), seed + attempt, 100 + attempt)
        victim.fs.fault(["sync"], "lost")
        victim.writer.run(lambda: connect(victim.plant.device), 24, 0.5, lambda: None)
        victim.plant.crash()
        victim.fs.lift()
        try:
            victim.plant.recover()
            victim.verify()
        except Failed as failed:
            print(f"found, as it must be: {failed}", flush=True)
            return
        victim.close()
    raise Failed("syncs that were never done went unnoticed in five power cuts")
