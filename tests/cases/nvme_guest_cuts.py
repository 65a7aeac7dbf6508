"""The power of a device that writes through goes under an old and a new kernel over NVMe/TCP: whatever the kernel said is synced is there."""

import random
import socket
import threading

from harness import KIB, MIB, World, check, equal, nvme
from harness.guest import BACKPORTS, DISTRIBUTION, Guest, newer_kernel
from harness.libnbd import connect

OURS = True
LIMIT = 240
ROUNDS = 4
WRITERS = 3
# As tests/guest/synced.c has them.
BLOCK = 16 * KIB
PIECE = 512


def run(world: World) -> None:
    port = nvme.listen(world)
    world.vsl("create", world.dir / "disk.vsl", "--size", 512 * MIB, "--drills")
    world.vsl("attach", world.dir / "disk.vsl")
    # With a cache the kernel's multipath layer would tell of flushes that were not: docs/nvme.md.
    world.vsl("config", "disk", "durability", "write-through")
    seed = random.randrange(1 << 31)
    print(f"seed {seed}", flush=True)
    chance, synced = random.Random(seed), [0] * WRITERS
    kernels = [DISTRIBUTION, BACKPORTS] if newer_kernel(world, "power cuts under a newer kernel over NVMe/TCP") else [DISTRIBUTION]
    for kernel in kernels:
        with Guest(world, kernel) as guest:
            for _ in range(ROUNDS):
                cut(world, guest, port, chance, synced)
    check(sum(synced) > 2 * ROUNDS * WRITERS, f"{synced} writes were synced in all: nothing was tried")


def cut(world: World, guest: Guest, port: int, chance: random.Random, synced: list[int]) -> None:
    """One cut under writers that sync each write; `synced` has each one's last number, and so has the device afterwards."""
    nvme.connect(guest, nvme.nqn(world, "disk"), port)
    path = nvme.namespace(guest, nvme.nqn(world, "disk"))
    world.vsl("drill", "disk", "power-cut", "--at-program", chance.randint(1, 40), "--seed", chance.randrange(1 << 31), "--unsynced", "random")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        guest.start(f"synced {path} {listener.getsockname()[1]} {' '.join(map(str, synced))}")
        told = [threading.Thread(target=listen, args=(listener.accept()[0], synced)) for _ in range(WRITERS)]
    for thread in told:
        thread.start()
    world.wait(lambda: "power-cut at" not in world.vsl("drill", "disk", "list").out, "the cut", 60)
    # A kernel may keep what is under way until the drive comes back. This one's drive does not.
    guest.run("nvme disconnect-all")
    for thread in told:
        thread.join()
    world.vsl("drill", "disk", "power-on")
    device = connect(world.vsl("status", "disk", "--field", "uri").out.strip())
    for writer, last in enumerate(synced):
        block = bytes(device.pread(BLOCK, writer * BLOCK))
        pieces = [int.from_bytes(block[at : at + 8], "little") for at in range(0, BLOCK, PIECE)]
        there = max(pieces)
        check(last <= there <= last + 1, f"writer {writer}: {last} was synced, {there} is there")
        count = BLOCK // PIECE
        equal(pieces, [max((n for n in range(max(1, there - count + 1), there + 1) if n % count == at), default=0) for at in range(count)], "pieces")
        synced[writer] = there
    device.shutdown()


def listen(client: socket.socket, synced: list[int]) -> None:
    """Notes what a writer tells."""
    with client, client.makefile() as lines:
        for line in lines:
            writer, number = map(int, line.split())
            synced[writer] = number
