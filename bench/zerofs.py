"""ZeroFS, a file system in an object store that serves files of one directory over NBD: a peer of `objects.py`."""

import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bucket import BUCKET, Bucket
from jobs import fill
from service import Exported

START_SECONDS = 60
# Messages of 9P2000.L, by which its files are made: https://github.com/chaos/diod/blob/master/protocol.md
RLERROR, LCREATE, SETATTR, VERSION, ATTACH, WALK, MKDIR = 7, 14, 26, 100, 104, 110, 72
NO_TAG, NO_FID, SIZE_IS_VALID = 0xFFFF, 0xFFFFFFFF, 8
READ_AND_WRITE = 2


class ZeroFs:
    """A server on a bucket, with caches that are empty whenever it starts."""

    def __init__(self, program: str, bucket: Bucket, directory: Path, size: int) -> None:
        self.program, self.bucket, self.directory, self.size = program, bucket, directory / "zerofs", size
        self.is_filled = False
        self.directory.mkdir()
        self.nbd, self.ninep = self.directory / "nbd.sock", self.directory / "9p.sock"
        keys = bucket.environment()
        (self.directory / "zerofs.toml").write_text(
            f'[cache]\ndir = "{self.directory}/cache"\ndisk_size_gb = 1.0\n'
            f'[storage]\nurl = "s3://{BUCKET}/zerofs"\nencryption_password = "a-word-for-the-bench"\n'
            f'[servers.ninep]\nunix_socket = "{self.ninep}"\n[servers.nbd]\nunix_socket = "{self.nbd}"\n'
            f'[aws]\naccess_key_id = "{keys["AWS_ACCESS_KEY_ID"]}"\nsecret_access_key = "{keys["AWS_SECRET_ACCESS_KEY"]}"\n'
            f'endpoint = "{bucket.endpoint}"\ndefault_region = "{keys["AWS_REGION"]}"\nallow_http = "true"\n'
        )

    def measure(self, measure: Callable[[str], float]) -> float:
        """Measures one address of it, whose data only the store has."""
        if not self.is_filled:
            self.serve(self.make_and_fill)
            self.is_filled = True
        return self.serve(lambda device: measure(f"--uri={device.uri}"))

    def make_and_fill(self, device: Exported) -> float:
        """Writes a new device once; gives how long that took, seconds."""
        make(self.ninep, device.name, self.size)
        began = time.monotonic()
        fill(device, self.size)
        return time.monotonic() - began

    def serve(self, work: Callable[[Exported], float]) -> float:
        """Does something while the server runs."""
        shutil.rmtree(self.directory / "cache", ignore_errors=True)
        for sock in (self.nbd, self.ninep):
            sock.unlink(missing_ok=True)
        with open(self.directory / "log", "ab") as log:
            process = subprocess.Popen([self.program, "run", "-c", self.directory / "zerofs.toml"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        device = Exported(process, self.nbd, "disk")
        try:
            deadline = time.monotonic() + START_SECONDS
            while not (self.nbd.exists() and self.ninep.exists()):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"ZeroFS did not start: {(self.directory / 'log').read_text()[-1000:]}")
                time.sleep(0.05)
            return work(device)
        finally:
            # Asked to end, it writes what it has not written yet.
            device.stop()


def make(sock: Path, name: str, size: int) -> None:
    """Makes a file in the directory whose files are devices, by 9P: no kernel has to mount anything."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(sock))

        def ask(kind: int, body: bytes, tag: int = 1, may_fail: bool = False) -> None:
            connection.sendall(struct.pack("<IBH", 7 + len(body), kind, tag) + body)
            length, answer, _ = struct.unpack("<IBH", receive(connection, 7))
            rest = receive(connection, length - 7)
            if answer == RLERROR and not may_fail:
                raise SystemExit(f"ZeroFS refuses message {kind} of 9P: {os.strerror(struct.unpack('<I', rest)[0])}")

        ask(VERSION, struct.pack("<I", 65536) + text("9P2000.L"), NO_TAG)
        ask(ATTACH, struct.pack("<II", 0, NO_FID) + text("root") + text("") + struct.pack("<I", 0))
        ask(MKDIR, struct.pack("<I", 0) + text(".nbd") + struct.pack("<II", 0o755, 0), may_fail=True)
        ask(WALK, struct.pack("<IIH", 0, 1, 1) + text(".nbd"))
        ask(LCREATE, struct.pack("<I", 1) + text(name) + struct.pack("<III", READ_AND_WRITE, 0o644, 0))
        ask(SETATTR, struct.pack("<IIIIIQQQQQ", 1, SIZE_IS_VALID, 0, 0, 0, size, 0, 0, 0, 0))


def text(word: str) -> bytes:
    """A string as 9P has them."""
    return struct.pack("<H", len(word)) + word.encode()


def receive(connection: socket.socket, count: int) -> bytes:
    """So many bytes."""
    got = b""
    while len(got) < count:
        more = connection.recv(count - len(got))
        if not more:
            raise SystemExit("ZeroFS hung up")
        got += more
    return got
