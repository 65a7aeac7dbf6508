"""Clients that ask for much and read nothing: what they hold is bounded over all of them and told, others are served, and when they go their memory goes."""

from pathlib import Path

import nbd

from harness import MIB, Device, World, check, equal
from harness.libnbd import connect

OURS = True
LIMIT = 90
CLIENTS, READS = 300, 64
PIECE = 1 * MIB
# What docs/nbd.md says: all of them beyond what each has of its own, that, and the device's own buffers.
BOUND = 256 * MIB + CLIENTS * PIECE * 5 // 4 + 384 * MIB


def run(world: World) -> None:
    device = world.device(256 * MIB)
    h = connect(device)
    content = bytes(number % 251 for number in range(PIECE))
    for at in range(0, 64 * MIB, PIECE):
        h.pwrite(content, at)
    h.flush()
    pid = device.server_pid()
    before = resident(pid)
    agrees(world, device, pid, before)

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
    agrees(world, device, pid, before)

    del strangers, stranger
    world.wait(lambda: len(world.servers.status()["devices"][0].get("clients") or [1]) <= 1, "the clients to be gone")
    world.wait(lambda: resident(pid) - before < 64 * MIB, f"their memory to be given back: {(resident(pid) - before) // MIB} MiB", 20)
    agrees(world, device, pid, before)
    equal(world.vsl("status", device.name, "--field", "health").out.strip(), "healthy", "health")
    large(device, content)


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
    check(refused <= 8, f"{refused} of 16 large reads were refused")
    equal(bytes(handles[-1].pread(32 * MIB, 0)[-PIECE:]) == content, True, "a large read when the others were read")


def resident(pid: int) -> int:
    """Memory of the process that is resident, bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def agrees(world: World, device: Device, pid: int, before: int) -> None:
    """The status's memory is the process's, but for what the service itself takes."""
    told = int(world.vsl("status", device.name, "--json").out.split('"memory_bytes":')[1].split(",")[0].split("}")[0])
    grown = resident(pid) - before
    check(abs(grown - told) < 64 * MIB + grown // 3, f"memory_bytes is {told // MIB} MiB, the process has grown by {grown // MIB} MiB")
