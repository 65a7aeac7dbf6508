"""NBD as it goes over the wire, for clients that do what no library would."""

import socket
import struct

IHAVEOPT = b"IHAVEOPT"
REQUEST = struct.Struct(">IHHQQI")
MAGIC = 0x25609513
READ, WRITE, DISC, FLUSH, TRIM = range(5)
ACK = 1
SIMPLE_REPLY = struct.Struct(">IIQ")


def option(number: int, data: bytes, length: int | None = None) -> bytes:
    """An option as it goes over the wire, with a length that may lie."""
    return IHAVEOPT + struct.pack(">II", number, len(data) if length is None else length) + data


def go(name: bytes) -> bytes:
    """The option that chooses an export and begins transmission."""
    return option(7, struct.pack(">I", len(name)) + name + b"\0\0")


def request(kind: int, cookie: int, offset: int, length: int) -> bytes:
    """A request's header."""
    return REQUEST.pack(MAGIC, 0, kind, cookie, offset, length)


def connect(path: object, name: bytes) -> socket.socket:
    """A client in transmission, without structured replies."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(str(path))
    s.sendall(struct.pack(">I", 3) + go(name))
    take(s, 18)
    while True:
        _, _, kind, length = struct.unpack(">QIII", take(s, 20))
        take(s, length)
        if kind == ACK:
            return s


def answer(s: socket.socket) -> int:
    """The next simple reply's error number."""
    return SIMPLE_REPLY.unpack(take(s, SIMPLE_REPLY.size))[1]


def take(s: socket.socket, count: int) -> bytes:
    """So many bytes, all of them."""
    got = b""
    while len(got) < count:
        more = s.recv(count - len(got))
        if not more:
            raise EOFError(f"the server hung up after {len(got)} of {count} bytes")
        got += more
    return got
