"""kill -9 of the service under load, with a server of Amazon's protocol as the store: nothing that was answered is lost, and the store catches up each time."""

import random

from cases.objects import SIZE, BLOCK, BLOCKS, bucket, change, compare, made, settle
from harness import MIB, World, check
from harness.fio import background_writes, fio
from harness.servers import kill

OURS = True
LIMIT = 300
ROUNDS = 5
# The rest of the device is fio's.
FIO_FROM = 128 * MIB


def run(world: World) -> None:
    lives(world, ROUNDS)


def lives(world: World, rounds: int) -> None:
    """So many lives of the service, each under load until it is killed."""
    check(BLOCK * BLOCKS <= FIO_FROM, "our blocks reach into those of fio")
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    world.servers.up()
    endpoint, _ = bucket(world)
    device, held = made(world, "db", "s3://bucket/kills", ["--endpoint", endpoint])
    answered = 0
    for number in range(rounds):
        load = background_writes(world, device, range(FIO_FROM, SIZE), fsync=8)
        changes = dice.randrange(5, 80)
        change(device, held, dice, changes, flush=dice.random() < 0.5)
        answered += changes
        kill(device)
        load.wait(timeout=60)
        world.servers.revive(device)
        compare(device, held)
        if number % 5 == 4:
            # What fio reads back is what it wrote since, with the groomer and the uploads at work on what the kills left.
            fio(
                world, device, "--rw=randwrite", "--bsrange=4k-64k", "--iodepth=16", f"--offset={FIO_FROM}", "--size=32M",
                "--verify=crc32c", "--do_verify=1",
            )
    settle(world, "db")
    compare(device, held)
    print(f"figure: {rounds} kills -9 of a service whose device is on objects, {answered} writes and trims answered, lost: 0")
