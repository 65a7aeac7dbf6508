"""A client that makes one request after the other, some of which may fail, and knows what each block may hold.

What a failed write leaves is nobody's promise: its blocks hold it, or what they held before. All else is promised: an
answered write is what reads give, and after a crash a block is at least as new as the last flush that was answered.
"""

import errno
import random
from collections.abc import Iterator

import nbd

from harness.check import check
from harness.stamps import BLOCK, LARGEST, check_whole, generation_in, stamped


class Ledger:
    """The client and its books."""

    def __init__(self, blocks: int, seed: int) -> None:
        self.dice = random.Random(seed)
        # What each block may hold, oldest first, from the newest that is durable on; and the newest that was answered.
        self.issued: list[list[int]] = [[0] for _ in range(blocks)]
        self.answered = [0] * blocks
        self.generation = 0
        self.kinds = {0: "zero"}
        self.writes: dict[int, range] = {}
        self.requests = 0
        self.failed: dict[str, int] = {}

    def step(self, handle: nbd.NBD, flush: float = 0.3) -> str | None:
        """Makes a request at random; gives the name of its error, or nothing."""
        roll = self.dice.random()
        if roll < flush:
            return self.flush(handle)
        count = self.dice.choice([1, 1, 1, 2, 5, 16, 64, LARGEST])
        first = self.dice.randrange(len(self.issued) - count + 1)
        return self.change(handle, range(first, first + count), self.dice.choice(["data"] * 5 + ["zero"]), self.dice.random() < 0.1)

    def change(self, handle: nbd.NBD, span: range, kind: str = "data", fua: bool = False) -> str | None:
        """Writes blocks, or trims them."""
        self.generation += 1
        generation = self.generation
        self.kinds[generation] = kind
        for block in span:
            self.issued[block].append(generation)
        flags = nbd.CMD_FLAG_FUA if fua else 0
        if kind == "data":
            self.writes[generation] = span
            data = b"".join(stamped(block, generation) for block in span)
            error = self._request(lambda: handle.pwrite(data, span.start * BLOCK, flags))
        else:
            error = self._request(lambda: handle.trim(len(span) * BLOCK, span.start * BLOCK, flags))
        if error is None:
            for block in span:
                self.answered[block] = generation
                if fua:
                    self.issued[block] = [generation]
        return error

    def flush(self, handle: nbd.NBD) -> str | None:
        """Flushes: everything that was answered is durable."""
        error = self._request(handle.flush)
        if error is None:
            for block, answered in enumerate(self.answered):
                issued = self.issued[block]
                del issued[: issued.index(answered)]
        return error

    def _request(self, request: object) -> str | None:
        self.requests += 1
        try:
            request()
        except nbd.Error as error:
            name = errno.errorcode.get(error.errnum, str(error.errnum))
            self.failed[name] = self.failed.get(name, 0) + 1
            return name
        return None

    def verify(self, handle: nbd.NBD, when: str, crashed: bool, unreadable: bool = False) -> int:
        """Reads every block and fails on the first that holds what it must not; gives how many could not be read, if some may."""
        found: list[int | None] = []
        for block, data in enumerate(self._blocks(handle)):
            if isinstance(data, nbd.Error):
                check(unreadable, f"{when}: block {block} cannot be read: {data}")
                found.append(None)
                continue
            allowed = self.issued[block]
            if not crashed:
                allowed = allowed[allowed.index(self.answered[block]) :]
            found.append(generation_in(data, block, allowed, self.kinds, f"{when}: "))
        if crashed:
            check_whole(self.writes, lambda block: self.issued[block][-1], found, f"{when}: ")
            for block, generation in enumerate(found):
                if generation is not None:
                    self.issued[block], self.answered[block] = [generation], generation
            self.writes.clear()
        return found.count(None)

    def _blocks(self, handle: nbd.NBD) -> Iterator[bytes | nbd.Error]:
        """Every block, or why it cannot be read: many at once, and one by one where that fails."""
        for first in range(0, len(self.issued), LARGEST):
            count = min(LARGEST, len(self.issued) - first)
            try:
                data = bytes(handle.pread(count * BLOCK, first * BLOCK))
            except nbd.Error:
                for block in range(first, first + count):
                    try:
                        yield bytes(handle.pread(BLOCK, block * BLOCK))
                    except nbd.Error as error:
                        yield error
            else:
                yield from (data[at : at + BLOCK] for at in range(0, len(data), BLOCK))
