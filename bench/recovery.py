"""How long a device takes to come back after a crash, when every sector was written at random."""

import shutil
import signal
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from contenders import Contender, Server
from jobs import FioFailed, fio

KILLS = 3


@dataclass
class Recovery:
    """What was measured."""

    size: int  # bytes of the device, all of them written
    fill_seconds: float
    clean_seconds: list[float]  # from the start of the program to the first reply, after a clean detach
    crash_seconds: list[float]  # the same after SIGKILL with writes in flight
    resident_mib: float  # memory of the server with everything mapped


def measure_recovery(contender: Contender, directory: Path, size: int) -> Recovery:
    """Fills a device, ends it in both ways, and takes the time until it answers again."""
    room = shutil.disk_usage(directory).free
    while size * 1.15 > room:
        size //= 2
        print(f"recovery: only {room >> 30} GiB free, taking a device of {size >> 30} GiB")
    server = contender.start(directory, size)
    try:
        began = time.monotonic()
        # Each sector once, in random order.
        fio([f"--uri={server.uri}", "--rw=randwrite", "--bs=4096", "--iodepth=32", f"--size={size}", "--norandommap=0"])
        filled = time.monotonic() - began
        resident = _resident_mib(server)
        clean, crash = [], []
        for _ in range(KILLS):
            server.stop()
            seconds, server = _back(contender, directory, size)
            clean.append(seconds)
        for _ in range(KILLS):
            _overwrite_and_kill(server, size)
            seconds, server = _back(contender, directory, size)
            crash.append(seconds)
        result = Recovery(size, filled, clean, crash, resident)
        print(f"recovery: {result}", flush=True)
        return result
    finally:
        server.stop()
        for store in directory.glob("*.img"):
            store.unlink()


def _back(contender: Contender, directory: Path, size: int) -> tuple[float, Server]:
    began = time.monotonic()
    server = contender.start(directory, size, make=False)
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(server.socket))
        if s.recv(8, socket.MSG_WAITALL) != b"NBDMAGIC":
            raise SystemExit(f"{contender.name} does not greet after it came back")
    return time.monotonic() - began, server


def _overwrite_and_kill(server: Server, size: int) -> None:
    """Random writes for a while, then SIGKILL in the middle of them."""
    timer = threading.Timer(8, server.process.send_signal, [signal.SIGKILL])
    timer.start()
    try:
        fio([f"--uri={server.uri}", "--rw=randwrite", "--bs=4096", "--iodepth=32", f"--size={size}", "--time_based", "--runtime=60"])
    except FioFailed:
        pass  # Its server was killed.
    timer.join()
    server.process.wait()


def _resident_mib(server: Server) -> float:
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0
