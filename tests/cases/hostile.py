"""Garbage, half sentences and abrupt ends on the socket close one connection at worst: another client never notices."""

import random
import socket
import struct

from harness import MIB, World, check, equal
from harness.libnbd import connect
from harness.wire import MAGIC, READ, REQUEST, WRITE, go, option, request

FIXED, NO_ZEROES = 1, 2


def run(world: World) -> None:
    device = world.device(64 * MIB)
    witness = connect(device)
    witness.pwrite(b"\x42" * 4096, 0)
    pid = device.server_pid()
    dice = random.Random(7)
    flags = struct.pack(">I", FIXED | NO_ZEROES)
    endless = struct.pack(">I", 0xFFFFFFFF)
    messages = [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        struct.pack(">I", 0xFFFFFFFF),  # client flags nobody knows
        flags + b"NOTMAGIC" * 4,
        flags + option(7, endless),  # GO with a name of 4 GiB - 1
        flags + option(7, b"", 0xFFFFFFFF),  # an option of 4 GiB
        flags + option(6, b"\0\0\0\1x\xff\xff"),  # INFO with more requests than there are
        flags + option(3, b"no data is allowed here"),
        flags + option(10, b"\0\0\0\0\xff\xff\xff\xff"),  # SET_META_CONTEXT with four billion queries
        flags + option(9999, b"?" * 100) * 50,
        flags + option(1, b"x" * 5000),  # EXPORT_NAME longer than any name
        flags + option(2, b""),
    ]
    for message in messages + [flags + dice.randbytes(dice.randrange(1, 4000)) for _ in range(100)]:
        talk(device.socket, message)
    # In transmission: wrong magic, a write that never comes, a write of 4 GiB, reads that nobody fetches.
    payloads = [
        b"\0" * 28,
        request(WRITE, 1, 0, 65536) + b"half",
        request(WRITE, 1, 0, 0xFFFFFFFF) + b"x" * 100_000,
        request(READ, 1, 0, 0xFFFFFFFF),
        b"".join(request(READ, n, 0, 1 << 20) for n in range(64)),
        b"".join(REQUEST.pack(MAGIC, 0, 0xFFFF, n, 0, 0) for n in range(64)),
        dice.randbytes(20_000),
    ]
    name = device.name.encode() if world.is_ours else b""
    start = go(name)
    for payload in payloads * 3:
        talk(device.socket, flags + start + payload)
        equal(bytes(witness.pread(4096, 0)), b"\x42" * 4096, "what the witness reads")
    equal(device.server_pid(), pid, "the server's process")
    check(connect(device).get_size() == device.size, "a new client is served another size")


def talk(path: object, message: bytes) -> None:
    """Says it, listens a moment, and hangs up."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(0.1)
        s.connect(str(path))
        try:
            s.sendall(message)
            while s.recv(65536):
                if len(message) > 1000:
                    break
        except OSError:
            pass
