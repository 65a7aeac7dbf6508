"""Clients that ask for much and read nothing: what they hold is bounded over all of them and told, others are served, and when they go their memory goes."""

import nbd

from harness import MIB, Device, World, check, equal
from harness.libnbd import connect
from harness.memory import agrees, resident

OURS = True
LIMIT = 90
CLIENTS, READS = 300, 64
PIECE = 1 * MIB
WRITERS = 200
# What docs/nbd.md says: what they share, what each has of its own, and the device's own buffers.
POT = 128 * MIB
BOUND = POT + CLIENTS * PIECE * 5 // 4 + 192 * MIB


def run(world: World) -> None:
    world.vsl("up", "--client-memory", f"{POT // MIB}MiB")
    device = world.device(256 * MIB)
    h = connect(device)
    content = bytes(number % 251 for number in range(PIECE))
    for at in range(0, 64 * MIB, PIECE):
        h.pwrite(content, at)
    h.flush()
    pid = device.server_pid()
    before = resident(pid)
    agrees(world, device, before)

    buffer = nbd.Buffer(PIECE)
    strangers = []
    for _ in range(CLIENTS):
        stranger = nbd.NBD()
        stranger.connect_uri(device.uri)
        for number in range(READS):
            stranger.aio_pread(buffer, number % 64 * PIECE)
        strangers.append(stranger)
    # Whoever reads is served meanwhile, again and again.
    for number in range(200):
        equal(bytes(h.pread(PIECE, number % 64 * PIECE)) == content, True, "a read beside them")
    most = resident(pid) - before
    check(most < BOUND, f"{CLIENTS} clients that do not read take {most // MIB} MiB")
    agrees(world, device, before)

    del strangers, stranger
    world.wait(lambda: len(world.servers.status()["devices"][0].get("clients") or [1]) <= 1, "the clients to be gone")
    world.wait(lambda: resident(pid) - before < 64 * MIB, f"their memory to be given back: {(resident(pid) - before) // MIB} MiB", 20)
    agrees(world, device, before)
    equal(world.vsl("status", device.name, "--field", "health").out.strip(), "healthy", "health")
    large(device, content)
    writers(world, device, content, before)


def writers(world: World, device: Device, content: bytes, before: int) -> None:
    """What clients send takes memory as long as they send, and an idle one takes none."""
    handles = [connect(device) for _ in range(WRITERS)]
    for handle in handles:
        handle.pwrite(content, 0)
    clients = lambda: world.servers.status()["devices"][0]["clients"]
    equal(len(clients()), WRITERS + 1, "clients")
    world.wait(lambda: sum(one["memory_bytes"] for one in clients()) == 0, "the buffers of idle clients to be given back", 20)
    check(agrees(world, device, before) < 32 * MIB, "idle clients are counted")
    equal(bytes(handles[0].pread(PIECE, 0)) == content, True, "a read after that")


def large(device: Device, content: bytes) -> None:
    """Reads of 32 MiB have a bound of their own: beyond it they are refused, and come when the others were read."""
    handles = [connect(device) for _ in range(16)]
    buffers = [nbd.Buffer(32 * MIB) for _ in handles]
    cookies = [handle.aio_pread(buffer, 0) for handle, buffer in zip(handles, buffers)]
    refused = 0
    for handle, cookie, buffer in zip(handles, cookies, buffers):
        try:
            while not handle.aio_command_completed(cookie):
                handle.poll(-1)
            equal(bytes(buffer.to_bytearray()[-PIECE:]) == content, True, "the end of a large read")
        except nbd.Error as error:
            equal(error.errno, "ENOMEM", "why a large read is refused")
            refused += 1
    # With what is usual, 256 MiB, eight and no more would be refused.
    check(8 < refused <= 16 - POT // (32 * MIB), f"{refused} of 16 large reads were refused")
    equal(bytes(handles[-1].pread(32 * MIB, 0)[-PIECE:]) == content, True, "a large read when the others were read")
