"""A device in a second server of Amazon's protocol, versitygw: take-overs, a server that hangs, kills of service and server under fio."""

import os
import random
import socket

from cases.objects import SIZE, change, compare, made, settle, silent
from cases.objects_kills import FIO_FROM
from harness import World, check
from harness.fio import background_writes
from harness.servers import kill

OURS = True
SLOW = True
LIMIT = 600
KILLS = 10


def run(world: World) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret-of-the-key", AWS_REGION="us-east-1")
    # Each directory is a bucket.
    (world.dir / "buckets" / "bucket").mkdir(parents=True)
    endpoint = f"http://127.0.0.1:{port}"

    def started() -> object:
        """Starts the server, and waits until it answers."""
        server = world.start(
            world.tool("versitygw"), "--port", f"127.0.0.1:{port}", "--access", "key", "--secret", "secret-of-the-key", "--region", "us-east-1",
            "--quiet", "--keep-alive", "posix", world.dir / "buckets", log="versitygw.log",
        )
        world.wait(lambda: listens(port), "the server to answer", seconds=60)
        return server

    server = started()
    world.servers.up()
    silent(world, "s3://bucket/silent", ["--endpoint", endpoint], server, dice)
    device, held = made(world, "db", "s3://bucket/kills", ["--endpoint", endpoint])
    answered = 0
    for number in range(KILLS):
        load = background_writes(world, device, range(FIO_FROM, SIZE), fsync=8)
        changes = dice.randrange(5, 80)
        if number % 2:
            # The server goes while objects are on their way to it, and what it had not written is gone.
            change(device, held, dice, changes // 2)
            server.kill()
            server.wait()
        change(device, held, dice, changes, flush=dice.random() < 0.5)
        answered += changes
        if number % 2:
            server = started()
        kill(device)
        load.wait(timeout=60)
        world.servers.revive(device)
        compare(device, held)
    settle(world, "db")
    compare(device, held)
    check(server.poll() is None, "the server ended by itself")
    print(f"figure: {KILLS} kills -9 of the service and {KILLS // 2} of versitygw, {answered} writes and trims answered, lost: 0")


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False
