"""A device on four files loses one of them, then another after the first is rebuilt: fio finds everything, and rotten sectors heal."""

import os

from harness import MIB, World, check, equal
from harness.fio import fio
from harness.libnbd import connect
from harness.servers import Device

OURS = True
BLOCK = 4096


def run(world: World) -> None:
    files = [world.dir / f"d{number}.vsl" for number in range(4)]
    world.vsl("create", *files, "--size", f"{256 * MIB}", "--parity", "1")
    again = world.vsl("create", *files, "--size", f"{256 * MIB}", fails=True)
    check("exists already" in again.text, "files of a device were made a second time")
    world.servers.up()

    def attach(*paths: object) -> Device:
        world.vsl("attach", *paths, "--name", "striped")
        return Device("striped", files[0], 256 * MIB, world.servers.uri("striped"))

    def health() -> str:
        return world.vsl("status", "striped", "--field", "health").out.strip()

    verify = ["--rw=randwrite", "--bsrange=4k-64k", "--size=128M", "--iodepth=16", "--verify=crc32c", "--fsync=16"]
    device = attach(*files)
    fio(world, device, *verify, "--do_verify=1")

    # One file goes missing: it must be named all the same, and everything is there without it.
    world.vsl("detach", "striped")
    elsewhere = world.dir / "elsewhere"
    elsewhere.mkdir()
    files[1].rename(elsewhere / "gone1")
    forgotten = world.vsl("attach", files[0], files[2], files[3], "--name", "striped", fails=True)
    check("name all of them" in forgotten.text, f"three of four files: {forgotten.text}")
    device = attach(*files)
    equal(health(), "degraded: 1 of 4 dies out of service", "health without a file")
    fio(world, device, *verify, "--verify_only=1")
    fio(world, device, *verify, "--do_verify=1", "--randseed=2")

    # It comes back with what it held: it is on record as lost, and not believed.
    world.vsl("detach", "striped")
    (elsewhere / "gone1").rename(files[1])
    device = attach(*files)
    equal(health(), "degraded: 1 of 4 dies out of service", "health with a stale file")
    fio(world, device, *verify, "--verify_only=1", "--randseed=2")
    spare = world.dir / "spare.vsl"
    world.vsl("rebuild", "striped", 1, "--onto", spare, "--wait")
    equal(health(), "healthy", "health after the rebuild")

    # Now another one may go.
    world.vsl("detach", "striped")
    files[1] = spare
    files[2].unlink()
    device = attach(*files)
    fio(world, device, *verify, "--verify_only=1", "--randseed=2")
    world.vsl("rebuild", "striped", 2, "--wait")
    equal(health(), "healthy", "health after the second rebuild")

    # Rot on one file: reads are right, and a scrub mends the rest.
    h = connect(device)
    content = [os.urandom(BLOCK) for _ in range(1024)]
    for number, block in enumerate(content):
        h.pwrite(block, 200 * MIB + number * BLOCK)
    h.shutdown()
    del h
    world.vsl("detach", "striped")
    places = sectors_in(files[3].read_bytes(), content)
    check(len(places) >= 32, f"only {len(places)} of 1024 sectors are on the last file")
    with open(files[3], "r+b") as file:
        for place in places:
            file.seek(place + 99)
            file.write(b"rotten")
    device = attach(*files)
    h = connect(device)
    for number, block in list(enumerate(content))[::16]:
        equal(bytes(h.pread(BLOCK, 200 * MIB + number * BLOCK)), block, f"sector {number} in spite of rot")
    h.shutdown()
    del h
    world.vsl("scrub", "striped", "--wait")
    equal(world.vsl("status", "striped", "--field", "unreadable").out.strip(), "", "unreadable sectors")
    world.wait(lambda: wrong(world) == 0, "the scrub to find nothing wrong any more", seconds=60)
    world.vsl("detach", "striped")
    last = world.vsl("attach", files[0], files[1], world.dir / "nowhere", world.dir / "nothing", fails=True)
    check("dies are missing" in last.text or "out of service" in last.text or "missing or failed" in last.text, last.text)


def sectors_in(image: bytes, content: list[bytes]) -> list[int]:
    """Where sectors stand in a file: behind 1 MiB of labels pages of 64 slots of 4128 bytes, each of 65 units of 4 KiB."""
    wanted = set(content)
    slots = (page + 4128 * slot for page in range(MIB, len(image), 65 * BLOCK) for slot in range(64))
    return [place for place in slots if image[place : place + BLOCK] in wanted]


def wrong(world: World) -> int:
    """Errors that another scrub finds."""
    before = int(world.vsl("status", "striped", "--field", "scrub_errors").out)
    world.vsl("scrub", "striped", "--wait")
    return int(world.vsl("status", "striped", "--field", "scrub_errors").out) - before
