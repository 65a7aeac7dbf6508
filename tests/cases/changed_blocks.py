"""What has changed since a snapshot, asked over NBD with nbdinfo, libnbd and qemu-img: holds it beside the data, copies only that, and refuses to answer once the snapshot is gone."""

import contextlib
import errno
import json
import os
import random
from typing import Iterator

import nbd

from harness import MIB, World, check, equal
from harness.libnbd import refused

OURS = True
SIZE = 64 * MIB
SECTOR = 4096
# More than one answer tells of.
WRITES = 3000


def run(world: World) -> None:
    device = world.device(SIZE)
    numbers = random.Random(29)
    base = bytearray(SIZE)
    with connected(device.uri, []) as handle:
        for at in range(0, SIZE // 2, MIB):
            base[at:at + MIB] = os.urandom(MIB)
            handle.pwrite(bytes(base[at:at + MIB]), at)
    world.vsl("snapshot", "create", device.name, "old")
    new, touched = bytearray(base), set()
    with connected(device.uri, []) as handle:
        for _ in range(WRITES):
            sector = numbers.randrange(SIZE // SECTOR)
            touched.add(sector)
            new[sector * SECTOR:(sector + 1) * SECTOR] = data = os.urandom(SECTOR)
            handle.pwrite(data, sector * SECTOR)
        # To forget what was there is a change; to forget what was not there is none.
        for sector, held in ((100, True), (101, True), (SIZE // SECTOR - 1, False)):
            new[sector * SECTOR:(sector + 1) * SECTOR] = bytes(SECTOR)
            handle.trim(SECTOR, sector * SECTOR)
            touched = touched | {sector} if held else touched - {sector}
    world.vsl("snapshot", "create", device.name, "new")
    with connected(device.uri, []) as handle:
        handle.pwrite(bytes(SECTOR), 7 * SECTOR)

    snapshot = named(device.uri, device.name, "new")
    context = "openvsl:changed:old"
    for uri, contexts in ((snapshot, [context]), (device.uri, [context, "openvsl:changed:new"])):
        listed = json.loads(world.run("nbdinfo", "--json", uri).out)["exports"][0]["contexts"]
        equal(listed, ["base:allocation", *contexts], f"contexts of {uri}")

    mapped = json.loads(world.run("nbdinfo", "--json", f"--map={context}", snapshot).out)
    equal(sectors(mapped, lambda one: one["type"] == 1), touched, "nbdinfo --map")
    mapped = json.loads(world.run("nbdinfo", "--json", f"--map={context}", device.uri).out)
    equal(sectors(mapped, lambda one: one["type"] == 1), touched | {7}, "nbdinfo --map of the device")
    shown = json.loads(world.vsl("--json", "snapshot", "diff", device.name, "old", "new").out)["blocks"]
    told = {at // SECTOR for block in shown for at in range(block["byte_offset"], block["byte_offset"] + block["size_bytes"], SECTOR)}
    equal(told, touched, "vsl snapshot diff")

    # With it, QEMU takes what has changed for what holds no data.
    options = f"driver=nbd,server.type=unix,server.path={device.socket},export={device.name}@new"
    dirty = f"{options},x-dirty-bitmap={context}"
    found = json.loads(world.run("qemu-img", "map", "--output=json", "--image-opts", dirty).out)
    found = [{"offset": one["start"], **one} for one in found]
    equal(sectors(found, lambda one: not one["data"]), touched, "qemu-img map")
    world.run("qemu-img", "map", "--image-opts", f"{options},x-dirty-bitmap=openvsl:changed:neither", fails=True)

    copied_by_context(snapshot, context, base, new)
    deleted(world, device, snapshot, context)


def named(uri: str, device: str, snapshot: str) -> str:
    return uri.replace(f"/{device}", f"/{device}@{snapshot}")


@contextlib.contextmanager
def connected(uri: str, contexts: list[str]) -> Iterator[nbd.NBD]:
    handle = nbd.NBD()
    for context in contexts:
        handle.add_meta_context(context)
    handle.connect_uri(uri)
    yield handle
    handle.shutdown()


def sectors(extents: list[dict], wanted: object) -> set[int]:
    """Sectors of the extents that are wanted; all of them lie behind one another, from the first byte to the last."""
    at = 0
    for one in extents:
        equal(one["offset"], at, "an extent begins")
        at += one["length"]
    equal(at, SIZE, "extents end")
    return {at // SECTOR for one in extents if wanted(one) for at in range(one["offset"], one["offset"] + one["length"], SECTOR)}


def copied_by_context(uri: str, context: str, base: bytearray, new: bytearray) -> None:
    """Both contexts together are what a backup program needs: what changed, and of that what holds nothing."""
    with connected(uri, ["base:allocation", context, "openvsl:changed:neither"]) as handle:
        check(handle.can_meta_context(context) and not handle.can_meta_context("openvsl:changed:neither"), "an unknown snapshot is known")
        at = 0
        while at < SIZE:
            runs: dict[str, list[tuple[int, int]]] = {}
            handle.block_status(SIZE - at, at, lambda name, _, entries, __: runs.update({name: list(zip(entries[0::2], entries[1::2]))}))
            equal(sorted(runs), ["base:allocation", context], "contexts of an answer")
            end = at + min(sum(length for length, _ in extents) for extents in runs.values())
            check(end > at, "an answer that tells of nothing")
            holes = spread(runs["base:allocation"], at, end, 3)
            for begin, stop in spread(runs[context], at, end, 1):
                base[begin:stop] = handle.pread(stop - begin, begin)
            for begin, stop in holes:
                check(not any(new[begin:stop]), f"a hole with data at {begin}")
            at = end
    check(base == new, "the changed blocks upon the older data are not the newer")


def spread(extents: list[tuple[int, int]], at: int, end: int, flags: int) -> list[tuple[int, int]]:
    """Those with these flags, cut at the end."""
    found = []
    for length, has in extents:
        if has == flags and at < end:
            found.append((at, min(at + length, end)))
        at += length
    return found


def deleted(world: World, device: object, uri: str, context: str) -> None:
    """A snapshot that goes while somebody compares with it: errors, and no answer."""
    with connected(uri, [context]) as handle:
        handle.block_status(SIZE, 0, lambda *_: None)
        world.vsl("snapshot", "delete", device.name, "old")
        refused("changes since what is gone", errno.EIO, lambda: handle.block_status(SIZE, 0, lambda *_: None))
    # Under the name that it had is another one now.
    world.vsl("snapshot", "create", device.name, "old")
    with connected(uri, [context, "base:allocation"]) as handle:
        check(not handle.can_meta_context(context), "a newer one counts as older")
        world.vsl("snapshot", "delete", device.name, "new")
        refused("a snapshot that is gone", errno.EIO, lambda: handle.block_status(SIZE, 0, lambda *_: None))
        refused("its data", errno.EIO, lambda: handle.pread(SECTOR, 0))
