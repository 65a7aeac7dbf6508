"""A writer that stamps every block it writes and knows, after a crash, what each block may hold.

Each 4 KiB block carries its own number and the generation (the running number) of the request that wrote it,
over and over. A block that was flushed at generation f and last written at generation n must hold one of the
generations f..n that were issued for it: anything older is a lost write, anything else is garbage. The blocks of one
write request that nothing was issued for afterwards must all hold it or all not: else it was torn.
"""

import random
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import nbd

from harness.check import Failed, check

BLOCK = 4096
STAMP = struct.Struct("<8sQQQ")
MAGIC = b"vslstamp"
LARGEST = 256  # blocks: 1 MiB
ZERO = bytes(BLOCK)


@dataclass
class Block:
    """What was issued for one block since it was last known to be durable; generation 0 is a block never written."""

    issued: list[int] = field(default_factory=lambda: [0])  # oldest first; the first one is durable
    answered: int = 0


class Writer:
    """Writes, trims, zeroes and flushes at random, over two connections, and keeps the books."""

    def __init__(self, blocks: int, seed: int, largest: int = LARGEST) -> None:
        # Blocks of a write that is never torn.
        self.largest = largest
        self.blocks = [Block() for _ in range(blocks)]
        self.dice = random.Random(seed)
        self.generation = 0
        self.kinds: dict[int, str] = {0: "zero"}  # what a generation left: "data" or "zero"
        self.writes: dict[int, range] = {}  # write requests whose fate is open
        self.busy: set[int] = set()
        self.flushes = 0
        self.in_flight = 0
        self.errors: list[int] = []

    def run(
        self, connect: Callable[[], nbd.NBD], depth: int, kill_after: float, kill: Callable[[], None],
        is_cut: Callable[[], bool] = lambda: False,
    ) -> int:
        """Works for a while, then has the server killed with requests in flight; gives how many were issued.

        Requests may fail earlier only if the power `is_cut` already.
        """
        handles = [connect(), connect()]
        answered_before = self.generation
        deadline = time.monotonic() + kill_after
        while time.monotonic() < deadline and not self.errors:
            while self.in_flight < depth:
                self._issue(self.dice.choice(handles))
            for handle in handles:
                handle.poll(1 if handle.aio_in_flight() else 0)
        while self.in_flight < depth and not self.errors:
            self._issue(self.dice.choice(handles))
        check(self.in_flight > 0 or self.errors, "nothing was in flight at the kill")
        check(not self.errors or is_cut(), f"requests failed before the kill, with error numbers {sorted(set(self.errors))}")
        kill()
        for handle in handles:
            try:
                while handle.aio_in_flight():
                    handle.poll(1000)
            except nbd.Error:
                pass  # The server is gone, as it should be.
        del handles
        self.errors.clear()
        self.busy.clear()
        self.in_flight = 0
        return self.generation - answered_before

    def _issue(self, handle: nbd.NBD) -> None:
        roll = self.dice.random()
        if roll < 0.02:
            return self._flush(handle)
        count = 1 if roll < 0.70 else self.dice.randint(2, min(64, self.largest)) if roll < 0.96 else self.largest
        first = self.dice.randrange(len(self.blocks) - count + 1)
        span = range(first, first + count)
        if not self.busy.isdisjoint(span):
            return None  # The order of overlapping requests in flight is nobody's promise.
        self.generation += 1
        generation = self.generation
        kind = "zero" if 0.60 < roll < 0.70 or 0.90 < roll < 0.96 else "data"
        fua = self.dice.random() < 0.05
        self.kinds[generation] = kind
        self.busy.update(span)
        for block in span:
            self.blocks[block].issued.append(generation)
        self.in_flight += 1

        def done(error: object) -> int:
            self.in_flight -= 1
            if error.value != 0:
                self.errors.append(error.value)
            else:
                self.busy.difference_update(span)
                for number in span:
                    self.blocks[number].answered = generation
                    if fua:
                        self._durable(self.blocks[number], generation)
            return 1

        flags = nbd.CMD_FLAG_FUA if fua else 0
        offset, length = first * BLOCK, count * BLOCK
        if kind == "data":
            self.writes[generation] = span
            data = bytearray(b"".join(stamped(block, generation) for block in span))
            handle.aio_pwrite(nbd.Buffer.from_bytearray(data), offset, done, flags)
        elif self.dice.random() < 0.5:
            handle.aio_trim(length, offset, done, flags)
        else:
            handle.aio_zero(length, offset, done, flags)
        return None

    def _flush(self, handle: nbd.NBD) -> None:
        # Covers what was answered before it was sent, over whichever connection.
        covered = [(block, block.answered) for block in self.blocks if block.issued[-1] != block.issued[0]]
        self.in_flight += 1

        def done(error: object) -> int:
            self.in_flight -= 1
            if error.value != 0:
                self.errors.append(error.value)
            else:
                self.flushes += 1
                for block, generation in covered:
                    self._durable(block, generation)
            return 1

        handle.aio_flush(done)

    @staticmethod
    def _durable(block: Block, generation: int) -> None:
        if generation in block.issued:
            del block.issued[: block.issued.index(generation)]

    def verify(self, handle: nbd.NBD) -> None:
        """Reads every block and fails on the first that holds what it must not."""
        found = []
        for first in range(0, len(self.blocks), LARGEST):
            count = min(LARGEST, len(self.blocks) - first)
            data = handle.pread(count * BLOCK, first * BLOCK)
            for index in range(count):
                number = first + index
                content = bytes(data[index * BLOCK : (index + 1) * BLOCK])
                found.append(generation_in(content, number, self.blocks[number].issued, self.kinds))
        check_whole(self.writes, lambda number: self.blocks[number].issued[-1], found)
        # What came back once must stay: from here on it is the durable state.
        for number, generation in enumerate(found):
            self.blocks[number] = Block([generation], generation)
        self.writes.clear()


def generation_in(data: bytes, block: int, allowed: list[int], kinds: dict[int, str], when: str = "") -> int:
    """The generation that a block holds; fails unless it is one of those allowed, oldest first."""
    if data == ZERO:
        zeros = [generation for generation in allowed if kinds[generation] == "zero"]
        check(zeros, f"{when}block {block} reads as zeros; it may hold only writes {allowed}")
        return zeros[-1]
    magic, own, generation, _ = STAMP.unpack_from(data)
    check(magic == MAGIC and data == stamped(own, generation), f"{when}block {block} holds garbage: {data[:64]!r}")
    check(own == block, f"{when}block {block} holds block {own} (of write {generation})")
    check(generation in allowed and kinds[generation] == "data", f"{when}block {block} holds write {generation}; it may hold {allowed}")
    return generation


def check_whole(writes: dict[int, range], newest: Callable[[int], int], found: list[int | None], when: str = "") -> None:
    """Fails if a write is torn: of its blocks, those that nothing newer was issued for and that can be read hold it in part."""
    for generation, span in writes.items():
        last = [block for block in span if newest(block) == generation and found[block] is not None]
        held = [block for block in last if found[block] == generation]
        if held and len(held) != len(last):
            raise Failed(
                f"{when}torn: write {generation} of blocks {span.start}..{span.stop - 1}: "
                f"{len(held)} of {len(last)} blocks hold it (first {held[0]})"
            )


def stamped(block: int, generation: int) -> bytes:
    """The content of a block as a generation wrote it."""
    return STAMP.pack(MAGIC, block, generation, block ^ generation) * (BLOCK // STAMP.size)
