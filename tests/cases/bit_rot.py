"""Rotten, swapped and blanked sectors in the device file are read errors, never wrong data; their neighbours stay readable."""

import errno
import os

from harness import MIB, World, check, equal
from harness.libnbd import connect, refused

OURS = True
BLOCK = 4096


def run(world: World) -> None:
    device = world.device(64 * MIB)
    h = connect(device)
    content = [os.urandom(BLOCK) for _ in range(64)]
    for number, block in enumerate(content):
        h.pwrite(block, number * BLOCK)
    h.shutdown()
    del h
    world.vsl("detach", device.name, "--force")

    image = device.path.read_bytes()
    places = [image.find(block) for block in content]
    check(all(place >= 0 for place in places), "a sector is not in the device file as it was written")
    with open(device.path, "r+b") as file:
        file.seek(places[10] + 1234)
        file.write(bytes([content[10][1234] ^ 0x04]))  # one bit
        file.seek(places[20])
        file.write(content[21])  # another sector's data, whole
        file.seek(places[30])
        file.write(bytes(BLOCK))

    world.vsl("attach", device.path, "--name", device.name)
    h = connect(device)
    for number, block in enumerate(content):
        if number in (10, 20, 30):
            refused(f"a read of damaged sector {number}", errno.EIO, lambda at=number: h.pread(BLOCK, at * BLOCK))
        else:
            equal(bytes(h.pread(BLOCK, number * BLOCK)), block, f"sector {number}")
    # Written anew, a sector is whole again.
    for number in (10, 20, 30):
        h.pwrite(content[number], number * BLOCK)
        equal(bytes(h.pread(BLOCK, number * BLOCK)), content[number], f"sector {number}, written anew")
