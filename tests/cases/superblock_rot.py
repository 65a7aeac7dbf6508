"""A superblock copy, a header or the checkpoint goes bad: what was flushed is there, or the attach says what is missing; a witness tells an old state."""

import os
import struct
from typing import Callable

from harness import MIB, World, check, equal
from harness.libnbd import connect
from harness.servers import kill

OURS = True
BLOCK = 4096
BLOCKS = 256
# Bytes of a superblock copy; where erase blocks begin; and in a superblock, where its shape and its checkpoint stand.
COPY = 64 << 10
FIRST_BLOCK = 1 << 20
SHAPE_AT, CHECKPOINT_AT = 44, 360

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "a flipped bit": lambda copy: copy[:300] + bytes([copy[300] ^ 4]) + copy[301:],
    "a flipped bit in the version": lambda copy: copy[:8] + bytes([copy[8] ^ 8]) + copy[9:],
    "zeros": lambda copy: bytes(len(copy)),
}


def run(world: World) -> None:
    for name, damage in DAMAGE.items():
        for copy in (0, 1):
            for killed in (False, True):
                what = f"{name} in copy {copy}, {'killed' if killed else 'detached'}"
                written = Written(world, killed)
                written.put(copy * COPY, damage(written.get(copy * COPY, COPY)))
                written.comes_back(what)
                written.away()
    headers(world)
    checkpoint(world)
    witness(world)


class Written:
    """A device that was written once, detached, attached and written again in part; then killed, or detached."""

    def __init__(self, world: World, killed: bool, *attach: object) -> None:
        self.world, self.device, self.options = world, world.device(64 * MIB), attach
        self.content: list[bytes] = [b""] * BLOCKS
        self.write(range(BLOCKS))
        self.detach()
        self.past = self.get(0, 2 * COPY)
        self.attach()
        self.write(range(64))
        if killed:
            kill(self.device)
        else:
            self.detach()

    def attach(self, fails: bool = False) -> str:
        """Attaches it; gives what was said."""
        return self.world.vsl("attach", self.device.path, "--name", self.device.name, *self.options, fails=fails).text

    def detach(self) -> None:
        """Detaches it."""
        self.world.vsl("detach", self.device.name, "--force")

    def write(self, blocks: range) -> None:
        """Writes these with something new, and flushes."""
        h = connect(self.device)
        for number in blocks:
            self.content[number] = os.urandom(BLOCK)
            h.pwrite(self.content[number], number * BLOCK)
        h.flush()
        h.shutdown()

    def put(self, at: int, data: bytes) -> None:
        """Changes the file."""
        with open(self.device.path, "r+b") as file:
            file.seek(at)
            file.write(data)

    def get(self, at: int, length: int) -> bytes:
        """Reads the file."""
        with open(self.device.path, "rb") as file:
            file.seek(at)
            return file.read(length)

    def newest(self) -> bytes:
        """The newer superblock copy."""
        return max((self.get(copy * COPY, COPY) for copy in (0, 1)), key=lambda copy: struct.unpack_from("<Q", copy, 16))

    def block_bytes(self) -> int:
        """Bytes of an erase block."""
        _, _, _, pages, slots, sector, unit = struct.unpack_from("<7I", self.newest(), SHAPE_AT)
        return pages * -(-slots * (sector + 32) // unit) * unit

    def comes_back(self, what: str) -> None:
        """It attaches, is healthy, and every block holds what was flushed last."""
        self.world.servers.revive(self.device)
        h = connect(self.device)
        old = [number for number, content in enumerate(self.content) if bytes(h.pread(BLOCK, number * BLOCK)) != content]
        equal(old, [], f"{what}: blocks that hold something else than what was flushed last")
        h.shutdown()
        equal(self.world.vsl("status", self.device.name, "--field", "health").out.strip(), "healthy", f"{what}: health")

    def away(self) -> None:
        """Makes room for the next one."""
        self.world.vsl("detach", self.device.name, "--force", fails=None)
        self.device.path.unlink()


def headers(world: World) -> None:
    """The header of each erase block in use rots in turn, after a kill."""
    written = Written(world, killed=True)
    image = written.device.path.read_bytes()
    world.servers.up()
    written.detach()
    found = missed = 0
    for at in range(FIRST_BLOCK, len(image), written.block_bytes()):
        if not any(image[at : at + 32]):
            continue
        written.device.path.write_bytes(image[:at] + bytes([image[at] ^ 1]) + image[at + 1 :])
        done = world.vsl("attach", written.device.path, "--name", written.device.name, fails=None)
        if done.code == 0:
            found += 1
            written.comes_back(f"the header at {at}")
            written.detach()
        else:
            missed += 1
            check("flushed entries are missing from the log" in done.text, done.text)
    check(found + missed >= 2, f"{found} attached, {missed} refused: too few erase blocks were in use")
    written.away()


def checkpoint(world: World) -> None:
    """A piece of the map rots: without parity nothing else has it, and the attach says so."""
    written = Written(world, killed=False)
    count, first = struct.unpack_from("<2I", written.newest(), CHECKPOINT_AT)
    check(count > 0, "a clean detach leaves a checkpoint")
    # The slot behind the header's.
    at = FIRST_BLOCK + first * written.block_bytes() + BLOCK + 32 + 100
    written.put(at, bytes([written.get(at, 1)[0] ^ 1]))
    said = written.attach(fails=True)
    check("the checkpoint has" in said and "readable slots of" in said, said)
    written.device.path.unlink()


def witness(world: World) -> None:
    """Both superblock copies are put back to an earlier state: only a witness can tell."""
    kept = world.dir / "witness"
    written = Written(world, False, "--witness", kept)
    now = written.get(0, 2 * COPY)
    written.put(0, written.past)
    said = written.attach(fails=True)
    check("older than its witness" in said, said)
    written.put(0, now)
    written.attach()
    written.comes_back("with its witness")
    # It is remembered: the service attaches it with its witness, and not without.
    kill(written.device)
    written.comes_back("after a kill, with its witness")
    kill(written.device)
    kept.rename(world.dir / "gone")
    world.servers.up()
    world.wait(lambda: world.servers.state(written.device) == "error", "the attach without a witness to be refused")
    health = world.vsl("status", written.device.name, "--field", "health").out
    check("witness" in health, health)
    (world.dir / "gone").rename(kept)
    written.attach()
    written.comes_back("with its witness again")
    world.vsl("create", world.dir / "other.vsl", "--size", 64 * MIB)
    said = world.vsl("attach", world.dir / "other.vsl", "--witness", kept, fails=True).text
    check("witness of another device" in said, said)
    # A format begins a new life, which this witness knows nothing of.
    written.detach()
    world.vsl("format", written.device.path, "--yes")
    said = written.attach(fails=True)
    check("witness of another device" in said, said)
    kept.unlink()
    written.attach()
    written.away()
