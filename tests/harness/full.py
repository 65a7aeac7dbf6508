"""The disk under a device fills up at any write: at the n-th, nothing is lost that was answered, and with room again all works."""

import random
from dataclasses import dataclass, field

from harness.check import check, equal
from harness.faultfs import FaultFs
from harness.ledger import Ledger
from harness.libnbd import connect
from harness.plant import Plant
from harness.stamps import BLOCK
from harness.world import MIB, World

SIZE = 16 * MIB
# So little that the groomer works.
RAW = ("--raw", 54 * MIB)
STEPS = 400
# Requests that are still made when one has failed.
MORE = 12
NEVER = 1 << 60
# Points that are never left out.
FIRST = 4
# What the points of failure have in common: the same requests each time.
SEED = 20


@dataclass
class Tally:
    """What came of it."""

    points: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    # Where the disk was full first.
    creates: int = 0
    attaches: int = 0
    # Devices that had to be attached anew to be written again.
    ended: int = 0


def writes_of_a_run(world: World, fs: FaultFs) -> int:
    """How many writes and allocations all of it makes when there is room."""
    rule = fs.fail(["write", "allocate"], "ENOSPC", after=NEVER)
    plant = Plant(world, fs, "whole", SIZE, options=RAW).start()
    ledger = Ledger(SIZE // BLOCK, SEED)
    handle = connect(plant.device)
    for _ in range(STEPS):
        equal(ledger.step(handle), None, "error of a request on a disk with room")
    handle.shutdown()
    plant.detach()
    seen = fs.rule(rule)["seen"]
    fs.lift()
    return seen


def full_at(world: World, fs: FaultFs, number: int, tally: Tally) -> None:
    """The disk is full from that write or allocation on."""
    print(f"--- full at write {number}", flush=True)
    dice = random.Random(number)
    plant = Plant(world, fs, f"full{number}", SIZE, options=RAW)
    rule = fs.fail(["write", "allocate"], "ENOSPC", after=number)
    tally.points += 1
    if not made(plant, rule, tally):
        return finish(plant, Ledger(SIZE // BLOCK, SEED), tally)
    ledger = Ledger(SIZE // BLOCK, SEED)
    handle = connect(plant.device)
    left = MORE
    for _ in range(STEPS):
        error = ledger.step(handle)
        if error is not None:
            check(fs.rule(rule)["fired"], f"{error} though there was room")
            check(error in ("ENOSPC", "EIO"), f"a full disk is reported as {error}")
            left -= 1
            if left == 0:
                break
    ledger.verify(handle, "on the full disk", crashed=False)
    for name, count in ledger.failed.items():
        tally.errors[name] = tally.errors.get(name, 0) + count
    ending = dice.choice(["room", "room", "crash", "crash on the full disk", "detach"])
    print(f"{ledger.requests} requests, failed: {ledger.failed}; then: {ending}", flush=True)
    handle.shutdown()
    del handle
    if ending == "room":
        fs.lift()
        goes_on(plant, ledger, tally)
    elif ending == "detach":
        # Without room for the last checkpoint it says so, and is as after a crash.
        crashed = plant.detach(fails=None).code != 0
        fs.lift()
        plant.attach()
        ledger.verify(connect(plant.device), "after a detach from the full disk", crashed)
    else:
        plant.crash(dice.randrange(1 << 32))
        if ending == "crash on the full disk":
            fs.switch_on()
            world.servers.up()
            world.wait(lambda: world.servers.state(plant.device) not in ("detached", "scanning"), "the attach on the full disk to end")
            if world.servers.state(plant.device) == "attached":
                ledger.verify(connect(plant.device), "after a crash, on the full disk", crashed=True)
            plant.crash(dice.randrange(1 << 32))
        fs.lift()
        plant.recover()
        ledger.verify(connect(plant.device), "after a crash on the full disk", crashed=True)
    finish(plant, ledger, tally)


def made(plant: Plant, rule: int, tally: Tally) -> bool:
    """Makes and attaches the device; false when the disk was full before that was done, and it was made once there was room."""
    fs = plant.fs
    created = plant.create(fails=None)
    if created.code != 0:
        tally.creates += 1
        check("space" in created.text, f"a full disk is not named: {created.text}")
        check(not plant.paths[0].exists(), "a device that could not be made is left behind")
        fs.lift()
        plant.create()
        plant.attach()
        return False
    attached = plant.attach(fails=None)
    if attached.code != 0:
        tally.attaches += 1
        check("space" in attached.text, f"a full disk is not named: {attached.text}")
        fs.lift()
        plant.attach()
        return False
    return True


def goes_on(plant: Plant, ledger: Ledger, tally: Tally) -> None:
    """There is room again: the device goes on, or after a failed sync or superblock once it is attached anew."""
    handle = connect(plant.device)
    ended = lambda: ledger.flush(handle) is not None and plant.status("state") == "error"  # noqa: E731
    # The first writes may still be refused: they are what makes it try again.
    plant.world.wait(lambda: ledger.step(handle, flush=0) is None or ended(), "a write that is taken, with room again", seconds=10)
    if ended():
        tally.ended += 1
        handle.shutdown()
        plant.detach(fails=None)
        plant.attach()
        # What was answered and never flushed went with a device that had failed.
        ledger.verify(connect(plant.device), "attached anew", crashed=True)
    else:
        equal(ledger.flush(handle), None, "error of a flush with room again")
        ledger.verify(handle, "with room again", crashed=False)
        handle.shutdown()


def finish(plant: Plant, ledger: Ledger, tally: Tally) -> None:
    """All works, and lasts."""
    handle = connect(plant.device)
    for _ in range(20):
        equal(ledger.step(handle), None, "error of a request with room again")
    equal(ledger.flush(handle), None, "error of a flush with room again")
    handle.shutdown()
    del handle
    plant.crash()
    plant.recover()
    ledger.verify(connect(plant.device), "after a crash with room again", crashed=True)
    plant.detach()
    for path in plant.paths:
        path.unlink()


def full_anywhere(world: World, points: int | None) -> None:
    """Fails at the first points of a run, in `create` and `attach`, and at so many of the others, or at each."""
    fs = FaultFs(world)
    writes = writes_of_a_run(world, fs)
    check(writes >= 200, f"a run makes only {writes} writes and allocations")
    tally = Tally()
    others = range(FIRST, writes)
    numbers = [*range(FIRST), *(others if points is None else sorted(random.sample(others, points)))]
    for number in numbers:
        full_at(world, fs, number, tally)
    check(tally.errors, "no request ever failed")
    errors = ", ".join(f"{count} {name}" for name, count in sorted(tally.errors.items()))
    print(
        f"figure: full at {tally.points} of {writes} writes: nothing answered was lost; requests failed with {errors}; first in create "
        f"{tally.creates} times, in attach {tally.attaches} times; {tally.ended} devices attached anew to go on"
    )
