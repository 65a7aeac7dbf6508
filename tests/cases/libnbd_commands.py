"""libnbd: structured replies, DF, REQ_ONE, FUA, CACHE, FAST_ZERO, every command of length 0, and data where it belongs."""

import errno

import nbd

from harness import KIB, MIB, World, check, equal
from harness.libnbd import chunks, connect, extents, refused

HOLE = nbd.STATE_HOLE | nbd.STATE_ZERO
SIZE = 64 * MIB


def run(world: World) -> None:
    h = connect(world.device(SIZE))
    check(h.get_structured_replies_negotiated(), "no structured replies")
    equal(h.get_protocol(), "newstyle-fixed", "protocol")
    reads(h)
    zeroes(h)
    block_status(world, h)
    h.cache(64 * KIB, 0)
    h.flush()
    strange(world)
    h.shutdown()


def reads(h: nbd.NBD) -> None:
    """Data, hole, data: the pieces are in their places, in as many chunks as the server likes, or in one."""
    a, b = b"\xaa" * (64 * KIB), b"\xbb" * (64 * KIB)
    h.pwrite(a, 0, nbd.CMD_FLAG_FUA)
    h.pwrite(b, 128 * KIB, nbd.CMD_FLAG_FUA)
    expected = a + bytes(64 * KIB) + b
    data, parts = chunks(h, 192 * KIB, 0)
    equal(data, expected, "a structured read")
    equal(sum(length for _, length in parts), 192 * KIB, "bytes in its chunks")
    data, parts = chunks(h, 64 * KIB, 64 * KIB, nbd.CMD_FLAG_DF)
    equal((data, len(parts)), (bytes(64 * KIB), 1), "a read with DF of 64 KiB")
    data, parts = chunks(h, 48 * KIB, 40 * KIB, nbd.CMD_FLAG_DF)
    equal((data, len(parts)), (expected[40 * KIB : 88 * KIB], 1), "a read with DF over a border")
    h.pwrite(a * 16, 8 * MIB)
    equal(bytes(h.pread(MIB, 8 * MIB)), a * 16, "1 MiB written and read in one request")


def zeroes(h: nbd.NBD) -> None:
    """Trim and every kind of write zeroes read back as zeros."""
    h.pwrite(b"\x11" * MIB, 16 * MIB)
    for number, flags in enumerate([0, nbd.CMD_FLAG_NO_HOLE, nbd.CMD_FLAG_FUA, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA]):
        h.zero(64 * KIB, 16 * MIB + number * 128 * KIB, flags)
    h.trim(64 * KIB, 16 * MIB + 512 * KIB, nbd.CMD_FLAG_FUA)
    data = bytes(h.pread(MIB, 16 * MIB))
    for number in range(5):
        start = number * 128 * KIB
        equal(data[start : start + 64 * KIB], bytes(64 * KIB), f"zeroed range {number}")
        equal(data[start + 64 * KIB : start + 128 * KIB], b"\x11" * (64 * KIB), f"what follows zeroed range {number}")
    # A fast zero succeeds (and zeroes) or fails at once with ENOTSUP (and changes nothing).
    try:
        h.zero(64 * KIB, 16 * MIB + 640 * KIB, nbd.CMD_FLAG_FAST_ZERO)
        expected = bytes(64 * KIB)
    except nbd.Error as error:
        equal(error.errnum, errno.ENOTSUP, "fast zero")
        expected = b"\x11" * (64 * KIB)
    equal(bytes(h.pread(64 * KIB, 16 * MIB + 640 * KIB)), expected, "a range after a fast zero")


def block_status(world: World, h: nbd.NBD) -> None:
    """Extents: data is data, the rest a hole; REQ_ONE gives exactly one, no longer than asked."""
    h.pwrite(b"\x22" * (128 * KIB), 32 * MIB)
    h.zero(64 * KIB, 34 * MIB, nbd.CMD_FLAG_NO_HOLE)
    found = extents(h, 4 * MIB, 30 * MIB)
    check(sum(length for length, _ in found[:1]) > 0, "no extents")
    flat = [flags for length, flags in found for _ in range(length // (64 * KIB))]
    equal(flat[:32], [HOLE] * 32, "2 MiB before the data")
    if len(flat) > 32:
        equal(flat[32:34], [0, 0], "the data")
    one = extents(h, 4 * MIB, 30 * MIB, nbd.CMD_FLAG_REQ_ONE)
    equal(len(one), 1, "extents with REQ_ONE")
    check(0 < one[0][0] <= 4 * MIB, f"REQ_ONE: an extent of {one[0][0]} bytes, {4 * MIB} were asked for")
    [(length, flags), *_] = extents(h, 64 * KIB, 34 * MIB)
    # Others call zeros a hole whatever was asked for; ours keeps the space.
    check(length > 0 and not (world.is_ours and flags & nbd.STATE_HOLE), "a range zeroed with NO_HOLE has become a hole")


def strange(world: World) -> None:
    """Wrong requests get the error that the specification names, and the connection goes on."""
    h = connect(world.device(SIZE, "strange"), strict=False)
    block = bytes(4096)
    refused("a read past the end", errno.EINVAL, lambda: h.pread(8192, SIZE - 4096))
    refused("a write past the end", errno.ENOSPC, lambda: h.pwrite(block * 2, SIZE - 4096))
    refused("a write of zeroes past the end", errno.ENOSPC, lambda: h.zero(8192, SIZE - 4096))
    refused("a trim past the end", errno.EINVAL, lambda: h.trim(8192, SIZE - 4096))
    refused("block status past the end", errno.EINVAL, lambda: h.block_status(8192, SIZE - 4096, lambda *_: 0))
    refused("a write with an unknown flag", errno.EINVAL, lambda: h.pwrite(block, 0, 1 << 14))
    if world.is_ours:
        refused("a read off the sector grid", errno.EINVAL, lambda: h.pread(512, 512))
        refused("a write off the sector grid", errno.EINVAL, lambda: h.pwrite(block, 1024))
    h.pwrite(block, 0)
    equal(bytes(h.pread(4096, 0)), block, "the connection after wrong requests")
    for nothing in [lambda: h.pread(0, 0), lambda: h.pwrite(b"", 0), lambda: h.trim(0, 0), lambda: h.zero(0, 0)]:
        try:
            nothing()
        except nbd.Error as error:
            # Length 0 is unspecified: it may be refused, but must not end the connection.
            check(error.errnum in (errno.EINVAL, errno.ENOSPC), f"a request of length 0: {error}")
    equal(bytes(h.pread(4096, 0)), block, "the connection after requests of length 0")
