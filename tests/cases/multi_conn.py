"""A flush on one connection makes durable what was answered on another: the daemon is killed right after it."""

import os

import nbd

from harness import KIB, MIB, World, check, equal
from harness.libnbd import connect
from harness.servers import kill

OURS = True


def run(world: World) -> None:
    device = world.device(64 * MIB)
    for number in range(5):
        writers = [connect(device) for _ in range(3)]
        flusher = connect(device)
        check(all(h.can_multi_conn() for h in writers), "multi-conn is not offered")
        data = [os.urandom(64 * KIB) for _ in writers]
        for index, (h, content) in enumerate(zip(writers, data)):
            h.pwrite(content, index * MIB)
            h.pwrite(content, (8 + index) * MIB)
            h.trim(64 * KIB, (8 + index) * MIB)
        flusher.flush()
        writers[0].pwrite(data[0], 32 * MIB, nbd.CMD_FLAG_FUA)
        kill(device)
        world.servers.revive(device)
        h = connect(device)
        for index, content in enumerate(data):
            equal(bytes(h.pread(64 * KIB, index * MIB)), content, f"round {number}: write of connection {index}")
            equal(bytes(h.pread(64 * KIB, (8 + index) * MIB)), bytes(64 * KIB), f"round {number}: trim of connection {index}")
        equal(bytes(h.pread(64 * KIB, 32 * MIB)), data[0], f"round {number}: the FUA write")
