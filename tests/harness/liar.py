"""A small NBD server that lies, one planted fault at a time: what the tests must catch.

Its data lies in a file, so that it outlives a kill as a real device's does. Run as a program: liar.py FAULT FILE SOCKET.
"""

import itertools
import mmap
import os
import socket
import struct
import sys
import threading
import time

FAULTS = {
    "honest": "no fault: the tests must pass",
    "lost": "one write in 200 is answered but not done",
    "misplaced": "one write in 200 goes to the next block",
    "rot": "one read in 500 has a bit flipped",
    "no-trim": "trims are answered but not done",
    "torn": "large writes are done in two steps, with a pause between",
    "volatile": "nothing reaches the file for three seconds, flushed or not",
}
BLOCK = 4096
OPT_EXPORT_NAME, OPT_ABORT, OPT_GO = 1, 2, 7
REP_ACK, REP_INFO, REP_ERR_UNSUP = 1, 3, 0x80000001
READ, WRITE, DISC, FLUSH, TRIM, CACHE, ZEROES = range(7)
# HAS_FLAGS, FLUSH, FUA, TRIM, WRITE_ZEROES, MULTI_CONN
FLAGS = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 8


class Liar:
    """The device and its fault."""

    def __init__(self, fault: str, path: str) -> None:
        self.fault = fault
        self.size = os.path.getsize(path)
        with open(path, "r+b") as file:
            self.file = mmap.mmap(file.fileno(), self.size)
        self.data = self.file
        self.count = itertools.count(1)
        if fault == "volatile":
            self.data = mmap.mmap(-1, self.size)
            self.data[:] = self.file[:]
            threading.Thread(target=self.write_back, daemon=True).start()

    def write_back(self) -> None:
        """Brings everything to the file, much too late."""
        while True:
            copy = self.data[:]
            time.sleep(3)
            self.file[:] = copy

    def read(self, offset: int, length: int) -> bytes:
        """Reads; or nearly."""
        data = self.data[offset : offset + length]
        if self.fault == "rot" and next(self.count) % 500 == 0:
            return bytes([data[0] ^ 0x10]) + data[1:]
        return data

    def write(self, offset: int, data: bytes) -> None:
        """Writes; or not."""
        turn = next(self.count) % 200 == 0
        if self.fault == "lost" and turn:
            return
        if self.fault == "misplaced" and turn and offset + len(data) + BLOCK <= self.size:
            offset += BLOCK
        if self.fault == "torn" and len(data) > 16 * BLOCK:
            half = len(data) // 2
            self.data[offset : offset + half] = data[:half]
            time.sleep(0.01)
            offset, data = offset + half, data[half:]
        self.data[offset : offset + len(data)] = data

    def zero(self, offset: int, length: int, trim: bool) -> None:
        """Zeroes; or forgets to."""
        if not (trim and self.fault == "no-trim"):
            self.data[offset : offset + length] = bytes(length)


def receive(s: socket.socket, length: int) -> bytes:
    """Exactly that many bytes."""
    data = bytearray()
    while len(data) < length:
        part = s.recv(length - len(data))
        if not part:
            raise ConnectionError
        data += part
    return bytes(data)


def negotiate(s: socket.socket, size: int) -> None:
    """Fixed newstyle, as little as clients make do with."""
    s.sendall(b"NBDMAGICIHAVEOPT" + struct.pack(">H", 3))
    (no_zeroes,) = struct.unpack(">I", receive(s, 4))
    while True:
        _, option, length = struct.unpack(">QII", receive(s, 16))
        receive(s, length)

        def answer(kind: int, data: bytes = b"", option: int = option) -> None:
            s.sendall(struct.pack(">QIII", 0x3E889045565A9, option, kind, len(data)) + data)

        if option == OPT_EXPORT_NAME:
            s.sendall(struct.pack(">QH", size, FLAGS) + (b"" if no_zeroes & 2 else bytes(124)))
            return
        if option == OPT_GO:
            answer(REP_INFO, struct.pack(">HQH", 0, size, FLAGS))
            answer(REP_ACK)
            return
        answer(REP_ACK if option == OPT_ABORT else REP_ERR_UNSUP)


def serve(s: socket.socket, liar: Liar) -> None:
    """One connection, one request after the other."""
    try:
        negotiate(s, liar.size)
        while True:
            _, _, command, cookie, offset, length = struct.unpack(">IHHQQI", receive(s, 28))
            data = b""
            if command == READ:
                data = liar.read(offset, length)
            elif command == WRITE:
                liar.write(offset, receive(s, length))
            elif command in (TRIM, ZEROES):
                liar.zero(offset, length, command == TRIM)
            elif command == DISC:
                return
            s.sendall(struct.pack(">IIQ", 0x67446698, 0, cookie) + data)
    except (ConnectionError, struct.error):
        return
    finally:
        s.close()


def main() -> None:
    """Serves until it is killed."""
    fault, path, name = sys.argv[1:]
    liar = Liar(fault, path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen(16)
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0], liar), daemon=True).start()


if __name__ == "__main__":
    main()
