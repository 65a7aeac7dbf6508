"""kill -9 of the daemon loses nothing that it answered, flushed or not: on one file, encrypted, on several with parity, with one of them gone, and an emulated card."""

import os
import random
from pathlib import Path

from harness import MIB, World, check, equal
from harness.libnbd import connect
from harness.servers import Device, kill

OURS = True
SIZE = 64 * MIB
BLOCK = 4096
BLOCKS = 600
ROUNDS = 4


def run(world: World) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    key = world.dir / "key"
    key.write_bytes(os.urandom(64))
    key.chmod(0o600)
    world.servers.up()
    answered = 0
    for name, files, options, opener in [
        ("plain", 1, ["--size", SIZE], []),
        ("sealed", 1, ["--size", SIZE, "--encrypt", "--key-file", key], ["--key-file", key]),
        ("parity", 3, ["--size", SIZE, "--parity", 1], []),
        ("double", 4, ["--size", SIZE, "--parity", 2, "--encrypt", "--key-file", key], ["--key-file", key]),
        ("card", 1, ["--emulate", "iodrive-320-mlc", "--scale", 64], []),
    ]:
        paths = [world.dir / f"{name}{number}.vsl" for number in range(files)]
        world.vsl("create", *paths, *options, "--yes")
        world.vsl("attach", *paths, "--name", name, *opener)
        device = Device(name, paths[0], SIZE, world.servers.uri(name))
        held = {number: bytes(BLOCK) for number in range(BLOCKS)}
        answered += sum(one_life(world, device, held, dice) for _ in range(ROUNDS))
        if name == "parity":
            answered += without_a_file(world, device, paths, held, dice)
        stage = staged(world)
        check(len(stage) == 1, f"{len(stage)} files in the directory of stages while a device is attached")
        equal(stage[0].stat().st_mode & 0o777, 0o600, "mode of the stage")
        world.vsl("detach", name, "--force")
        equal(staged(world), [], "stages after a detach")
    formats(world)
    print(f"figure: writes, trims and zeroings answered before a kill -9: {answered}, lost: 0")


def staged(world: World) -> list[Path]:
    """The files of all stages."""
    return sorted(Path(os.environ["OPENVSL_STAGING_DIR"]).iterdir())


def one_life(world: World, device: Device, held: dict[int, bytes], dice: random.Random) -> int:
    """Changes without a flush, a kill, and everything that was answered is there. Gives how many."""
    h = connect(device)
    changes = dice.randrange(1, 400)
    for _ in range(changes):
        number = dice.randrange(BLOCKS)
        match dice.randrange(5):
            case 0:
                h.trim(BLOCK, number * BLOCK)
                held[number] = bytes(BLOCK)
            case 1:
                h.zero(BLOCK, number * BLOCK)
                held[number] = bytes(BLOCK)
            case _:
                held[number] = dice.randbytes(BLOCK)
                h.pwrite(held[number], number * BLOCK)
    if dice.random() < 0.3:
        h.flush()
        held[1] = dice.randbytes(BLOCK)
        h.pwrite(held[1], BLOCK)
    kill(device)
    world.servers.revive(device)
    if dice.random() < 0.4:
        # The attach that writes back may be killed too, or find nothing left to do.
        kill(device)
        world.servers.revive(device)
    h = connect(device)
    for number, block in held.items():
        equal(bytes(h.pread(BLOCK, number * BLOCK)), block, f"{device.name}: block {number} after a kill")
    h.shutdown()
    return changes


def without_a_file(world: World, device: Device, paths: list[Path], held: dict[int, bytes], dice: random.Random) -> int:
    """The same once one of the device's files is lost: what was for it is nowhere but in the stage and in parity."""
    world.vsl("detach", device.name, "--force")
    paths[1].rename(world.dir / "gone")
    world.vsl("attach", *paths, "--name", device.name)
    return sum(one_life(world, device, held, dice) for _ in range(ROUNDS))


def formats(world: World) -> None:
    """A format leaves nothing of what a killed daemon left."""
    device = world.device(SIZE, "again")
    h = connect(device)
    h.pwrite(b"x" * BLOCK, 0)
    kill(device)
    equal(len(staged(world)), 1, "stages after a kill")
    world.vsl("format", device.path, "--yes")
    equal(staged(world), [], "stages after a format")
    world.servers.revive(device)
    equal(bytes(connect(device).pread(BLOCK, 0)), bytes(BLOCK), "a block after a format")
