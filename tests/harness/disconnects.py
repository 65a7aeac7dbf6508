"""Clients that hang up in the middle of everything, and one beside them that must not notice."""

import os
import random
import select
import socket
import struct
import threading
from pathlib import Path

from harness.check import Failed, check, equal
from harness.libnbd import connect
from harness.memory import resident
from harness.servers import Device
from harness.wire import FLUSH, READ, TRIM, WRITE, go, option, request
from harness.world import KIB, MIB, World

SIZE = 64 * MIB
# The half of the device that the bystander has for itself.
OURS = SIZE // 2
IN_FLIGHT = 64
CLIENTS = 4
# Clients that may hang up for each answer that the bystander gets: that many requests may stand before one of its own.
AHEAD = 8
GROWTH = 64 * MIB

# Where clients hang up.
PLACES = ["handshake", "header", "payload", "in flight", "answers"]


class Bystander(threading.Thread):
    """Writes and reads its half of the device, checks all of it, and lets the others go on with every answer."""

    def __init__(self, device: Device, ahead: threading.Semaphore, seed: int) -> None:
        super().__init__(daemon=True)
        self.device, self.ahead, self.dice = device, ahead, random.Random(seed)
        self.over = threading.Event()
        self.answers = 0
        self.failure: str | None = None

    def run(self) -> None:
        try:
            self.work()
        except Exception as error:  # of any kind: the test's own thread must learn of it
            self.failure = f"the bystander: {error!r}"
        # Nobody waits for an answer that does not come any more.
        self.ahead.release(CLIENTS)

    def work(self) -> None:
        handle = connect(self.device)
        known: dict[int, bytes] = {}
        while not self.over.is_set() or self.answers < 100:
            at = OURS + self.dice.randrange((SIZE - OURS) // (16 * KIB)) * 16 * KIB
            if self.dice.random() < 0.5:
                known[at] = self.dice.randbytes(16 * KIB)
                handle.pwrite(known[at], at)
            else:
                equal(bytes(handle.pread(16 * KIB, at)), known.get(at, bytes(16 * KIB)), f"what the bystander reads at {at}")
            if self.answers % 64 == 0:
                handle.flush()
            self.answers += 1
            self.ahead.release(AHEAD)
        for at, content in known.items():
            equal(bytes(handle.pread(16 * KIB, at)), content, f"what the bystander reads at {at} in the end")
        handle.shutdown()


def hang_up(address: object, name: bytes, place: str, dice: random.Random) -> None:
    """One client: says something, as far as `place`, and is gone; by a reset, or by an end that comes too early."""
    family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
    with socket.socket(family) as s:
        s.settimeout(60)
        s.connect(address)
        reset = dice.random() < 0.5
        if reset:
            # Closing throws away what is on its way and sends RST.
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        hello = struct.pack(">I", 3) + option(8, b"") + go(name)
        if place == "handshake":
            s.sendall(hello[: dice.randrange(len(hello))])
            return
        requests = []
        for number in range(IN_FLIGHT):
            kind = dice.choice([READ, READ, WRITE, WRITE, FLUSH, TRIM])
            at, length = dice.randrange(OURS // (64 * KIB)) * 64 * KIB, dice.choice([4, 16, 64]) * KIB
            at, length = (0, 0) if kind == FLUSH else (at, length)
            payload = bytes(length) if kind == WRITE else b""
            requests.append(request(kind, number, at, length) + payload)
        said = hello + b"".join(requests)
        if place == "header":
            said += request(READ, 99, 0, 4 * KIB)[: dice.randrange(1, 28)]
        elif place == "payload":
            said += request(WRITE, 99, 0, 1 * MIB) + bytes(dice.randrange(1 * MIB))
        # What comes back for certain: the handshake's answers, and 16 bytes for each request.
        exchange(s, said, dice.randrange(1, 1000) if place == "answers" else 0)
        if not reset:
            s.shutdown(socket.SHUT_WR)


def exchange(s: socket.socket, said: bytes, wanted: int) -> None:
    """Says all of it and takes so many bytes of answers; or stops where the other side takes no more for a moment."""
    s.setblocking(False)
    left = memoryview(said)
    while left or wanted:
        readable, writable, _ = select.select([s] if wanted else [], [s] if left else [], [], 60 if wanted else 0.05)
        if not readable and not writable:
            check(not wanted, f"{wanted} bytes of answers never came")
            return
        if writable:
            left = left[s.send(left[: 256 * KIB]) :]
        if readable:
            taken = len(s.recv(wanted))
            check(taken, "the server hung up on a client that keeps to the protocol")
            wanted -= taken


def descriptors(pid: int) -> int:
    """Open files of a process."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def disconnects(world: World, count: int, seed: int) -> None:
    """So many clients hang up with 64 requests in flight, and others in the handshake, over a Unix socket and TCP, while another one works."""
    print(f"seed {seed}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    world.vsl("up", "--nbd-listen", f"127.0.0.1:{port}")
    device = world.device(SIZE)
    name = device.name.encode()
    addresses = [str(device.socket), ("127.0.0.1", port)]
    pid = device.server_pid()
    ahead = threading.Semaphore(0)
    bystander = Bystander(device, ahead, seed)
    bystander.start()
    reached: dict[str, int] = dict.fromkeys(PLACES, 0)
    lock = threading.Lock()
    failures: list[str] = []

    def client(number: int, rounds: int) -> None:
        dice = random.Random(seed * CLIENTS + number)
        left = rounds
        while left > 0:
            # Without an answer to the bystander nobody goes on: if the server owes it one, it never comes from here.
            ahead.acquire()
            if bystander.failure or failures:
                return
            place = dice.choice(PLACES)
            try:
                hang_up(dice.choice(addresses), name, place, dice)
            except Exception as error:
                failures.append(f"a client that hangs up ({place}): {error!r}")
                return
            with lock:
                reached[place] += 1
            # One that hangs up in the handshake has no requests in flight, and comes on top.
            left -= place != "handshake"

    def all_clients(rounds: int) -> None:
        threads = [threading.Thread(target=client, args=(number, rounds), daemon=True) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check(not failures and not bystander.failure, f"{failures} {bystander.failure}")

    def connected() -> int:
        [shown] = [d for d in world.servers.status()["devices"] if d["name"] == device.name]
        return len(shown["clients"])

    # Buffers and threads come to their size first.
    warm = max(20, count // 20)
    all_clients(warm // CLIENTS)
    world.wait(lambda: connected() <= 1, "the clients that hung up to be gone")
    reached.update(dict.fromkeys(PLACES, 0))
    before, files = resident(pid), descriptors(pid)
    all_clients(-(-count // CLIENTS))
    bystander.over.set()
    world.wait(lambda: connected() <= 1, "the clients that hung up to be gone")
    grown = resident(pid) - before
    bystander.join(60)
    check(not bystander.is_alive(), "the bystander waits for an answer")
    if bystander.failure:
        raise Failed(bystander.failure)
    world.wait(lambda: connected() == 0, "the bystander to be gone")
    equal(device.server_pid(), pid, "the server's process")
    # Who just asked for the process is still being let go of.
    world.wait(lambda: descriptors(pid) <= files, f"the server to have {files} open files again, it has {descriptors(pid)}")
    check(grown < GROWTH, f"memory grew by {grown >> 20} MiB in {count} disconnects")
    check(all(reached.values()), f"nobody hung up in some place: {reached}")
    check("panicked" not in "".join(log.read_text(errors="replace") for log in world.dir.rglob("*.log")), "a thread panicked")
    handshakes = reached.pop("handshake")
    print(
        f"figure: abrupt disconnects: {sum(reached.values())} with {IN_FLIGHT} requests in flight and {handshakes} in the handshake, "
        f"0 errors of {bystander.answers} answers to a bystander, memory grew by {max(grown, 0) / MIB:.1f} MiB"
    )
