"""Faults below a device, one kind at a time: what a client may see of each, and that nothing answered is lost."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from harness.check import check, equal
from harness.faultfs import FaultFs
from harness.ledger import Ledger
from harness.libnbd import connect
from harness.plant import Kind, Plant
from harness.stamps import BLOCK
from harness.world import MIB, World

SIZE = 16 * MIB
# Requests of a scene, and up to ten times as many until it happens.
STEPS = 80
ONE = Kind()
PARITY = Kind(files=4, parity=1)


@dataclass
class Scene:
    """A fault and what it may do."""

    name: str
    # Puts the rules in force, on the file of that name.
    begin: Callable[[FaultFs, str], None]
    # Errors that requests may get on one file. With parity none may get any.
    errors: tuple[str, ...] = ()
    # Whether sectors may be unreadable afterwards on one file.
    unreadable: bool = False
    # Whether the device takes no writes any more until it is attached anew, on one file.
    ends: bool = False
    # Whether a die is given up with parity.
    loses: bool = False
    # Whether it only makes sense where there is parity.
    only_parity: bool = False
    # Whether parity has nothing to add.
    only_one: bool = False
    # Whether there is no direct I/O.
    no_direct: bool = False


def fails(on: list[str], error: str, **rule: object) -> Callable[[FaultFs, str], None]:
    """Operations fail."""
    return lambda fs, file: fs.fail(on, error, file=file, **rule) and None


def happens(on: list[str], effect: object, **rule: object) -> Callable[[FaultFs, str], None]:
    """Something happens to operations."""
    return lambda fs, file: fs.fault(on, effect, file=file, **rule) and None


def short_and_interrupted(fs: FaultFs, file: str) -> None:
    """Reads stop short; reads and writes are interrupted."""
    fs.fault(["read"], {"short": 8192}, every=3, file=file)
    fs.fault(["read"], {"short": 5000}, every=7, file=file)
    fs.fail(["read", "write"], "EINTR", every=5, file=file)
    fs.fail(["read", "write"], "EAGAIN", every=11, file=file)


SCENES = [
    Scene("some reads fail", fails(["read"], "EIO", every=3), errors=("EIO",), unreadable=True),
    Scene("some writes fail", fails(["write"], "EIO", after=3, every=2, times=6), errors=("EIO",), loses=True),
    Scene("all writes fail", fails(["write"], "EIO", after=3), errors=("EIO",), loses=True),
    Scene("it turns read-only", fails(["write", "allocate", "punch"], "EROFS", after=3), errors=("EIO",), loses=True),
    Scene("a sync fails", fails(["sync"], "EIO", after=8, times=1), errors=("EIO",), ends=True, loses=True),
    Scene("a sync fails and its pages count as clean", fails(["sync"], "EIO", dirty="clean", after=8, times=1), ("EIO",), ends=True, loses=True),
    Scene("a sync fails and its pages are gone", fails(["sync"], "EIO", dirty="evict", after=8, times=1), ("EIO",), True, True, True),
    Scene("all syncs fail and their pages count as clean", fails(["sync"], "EIO", dirty="clean", after=8), ("EIO",), ends=True, only_one=True),
    Scene("space cannot be made sure of", fails(["allocate", "punch"], "EOPNOTSUPP")),
    Scene("reads stop short", short_and_interrupted),
    Scene("reads stop short, without direct I/O", short_and_interrupted, no_direct=True),
    Scene("it is slow", happens(["read", "write", "sync", "allocate"], {"delay": 20}, every=3)),
    Scene("reads have a bit flipped", happens(["read"], {"flip": 12345}, every=3), errors=("EIO",), unreadable=True),
    Scene("writes get lost", happens(["write"], "lost", after=3, every=3), only_parity=True),
    Scene("writes land elsewhere", happens(["write"], {"misdirect": 8192}, after=3, every=3), only_parity=True),
]


def play(world: World, fs: FaultFs, scene: Scene, kind: Kind, seed: int) -> str:
    """Plays a scene; gives what came of it."""
    name = f"{scene.name}, {kind}"
    print(f"--- {name}", flush=True)
    dice = random.Random(seed)
    plant = Plant(world, fs, f"p{seed}", SIZE, kind).start()
    ledger = Ledger(SIZE // BLOCK, seed)
    alone = kind.parity == 0
    errors = scene.errors if alone else ()
    handle = connect(plant.device)
    for _ in range(20):
        equal(ledger.step(handle), None, f"{name}: error before it begins")
    scene.begin(fs, plant.paths[dice.randrange(kind.files)].name)
    fired = 0
    for turn in range(10 * STEPS):
        error = ledger.step(handle)
        check(error is None or error in errors, f"{name}: a request failed with {error}")
        if dice.random() < 0.1:
            ledger.verify(handle, f"{name}, under way", crashed=False, unreadable=alone and scene.unreadable)
        fired = sum(rule["fired"] for rule in fs.ask("state")["rules"])
        if fired and turn >= STEPS:
            break
    check(fired, f"{name}: it never happened")
    check(ledger.failed or not alone or not scene.ends, f"{name}: no request failed")
    fs.lift()
    if alone and scene.ends:
        # Whatever later syncs say: what the failed one should have covered may be gone.
        check(ledger.flush(handle) is not None, f"{name}: a flush is answered after a sync that failed")
        check(ledger.change(handle, range(1)) is not None, f"{name}: a write is answered after a sync that failed")
        equal(plant.status("state"), "error", f"{name}: state")
    elif alone and scene.errors:
        world.wait(lambda: ledger.flush(handle) is None, f"{name}: a flush that is answered, once it is over", seconds=10)
    else:
        equal(ledger.flush(handle), None, f"{name}: error of a flush, once it is over")
    ledger.verify(handle, f"{name}, over", crashed=False, unreadable=alone and scene.ends)
    handle.shutdown()
    del handle
    lost = plant.status("lost_dies")
    check(bool(lost) == (scene.loses and not alone), f"{name}: dies out of service: {lost or 'none'}")
    if alone and scene.ends:
        plant.detach(fails=None)
        plant.attach()
        ledger.verify(connect(plant.device), f"{name}, attached anew", crashed=True)
        handle = connect(plant.device)
        # It is a device like any other again: what it answers now must last.
        equal(ledger.flush(handle), None, f"{name}: error of a flush, attached anew")
        handle.shutdown()
        del handle
    plant.crash(dice.randrange(1 << 32))
    plant.recover()
    ledger.verify(connect(plant.device), f"{name}, after a crash", crashed=True)
    if lost := plant.status("lost_dies"):
        world.vsl("rebuild", plant.name, lost, "--wait")
        equal(plant.status("health"), "healthy", f"{name}: health after the rebuild")
        ledger.verify(connect(plant.device), f"{name}, rebuilt", crashed=False)
    plant.detach()
    for path in plant.paths:
        path.unlink()
    return f"{name}: {fired} times"


def kinds(scene: Scene) -> list[Kind]:
    """On what it is played."""
    return [PARITY] if scene.only_parity else [ONE] if scene.only_one else [ONE, PARITY]


def play_all(world: World, seeds: range) -> None:
    """Plays every scene with each seed, on one file and with parity."""
    mounts = [FaultFs(world), FaultFs(world, "buffered", "--no-direct")]
    played, happened = 0, 0
    for turn in seeds:
        for number, scene in enumerate(SCENES):
            for kind in kinds(scene):
                said = play(world, mounts[scene.no_direct], scene, kind, turn * 1000 + number * 2 + (kind is PARITY))
                print(said, flush=True)
                played += 1
                happened += int(said.split()[-2])
    print(f"figure: {len(SCENES)} kinds of faults, {played} devices, {happened} operations hit: nothing answered was lost")
