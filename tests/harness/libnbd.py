"""libnbd, the reference client library, through its Python binding."""

import errno
from typing import Callable

import nbd

from harness.check import Failed, check, equal
from harness.servers import Device


def connect(device: Device | str, strict: bool = True, contexts: bool = True) -> nbd.NBD:
    """An open connection. Not `strict`: the library lets wrong requests through, to see what the server says."""
    handle = nbd.NBD()
    if contexts:
        handle.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    if not strict:
        handle.set_strict_mode(0)
    handle.connect_uri(device if isinstance(device, str) else device.uri)
    return handle


def refused(what: str, expected: int, request: Callable[[], object]) -> None:
    """Fails unless the request gets that very error."""
    try:
        request()
    except nbd.Error as error:
        found = errno.errorcode.get(error.errnum, str(error.errnum))
        equal(found, errno.errorcode[expected], f"{what}: error")
        return
    raise Failed(f"{what}: succeeded, expected {errno.errorcode[expected]}")


def extents(handle: nbd.NBD, count: int, offset: int, flags: int = 0) -> list[tuple[int, int]]:
    """What BLOCK_STATUS says of base:allocation, as (length, flags)."""
    found: list[tuple[int, int]] = []

    def extent(context: str, start: int, entries: list[int], error: object) -> None:
        check(context == nbd.CONTEXT_BASE_ALLOCATION, f"extents of {context}")
        equal(start, offset, "extents begin")
        found.extend(zip(entries[0::2], entries[1::2]))

    handle.block_status(count, offset, extent, flags)
    return found


def chunks(handle: nbd.NBD, count: int, offset: int, flags: int = 0) -> tuple[bytes, list[tuple[int, int]]]:
    """A structured read: the data, and the chunks it came in as (offset, length)."""
    found: list[tuple[int, int]] = []
    data = handle.pread_structured(count, offset, lambda buf, at, status, error: found.append((at, len(buf))), flags)
    return bytes(data), sorted(found)
