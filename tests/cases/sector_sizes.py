"""Sectors of 512, 1024, 2048 and 4096 bytes: each is the block size clients see, and data in single sectors survives a crash."""

import nbd

from harness import MIB, World, check, equal
from harness.libnbd import connect
from harness.servers import kill

OURS = True


def run(world: World) -> None:
    devices = {sector: world.device(32 * MIB, f"disk{sector}", sector=sector) for sector in [512, 1024, 2048, 4096]}
    for sector, device in devices.items():
        h = connect(device)
        equal(h.get_block_size(nbd.SIZE_MINIMUM), sector, "smallest block")
        for number in range(64):
            h.pwrite(bytes([number + 1]) * sector, number * 3 * sector)
        h.trim(sector, 9 * sector)
        h.flush()
        [shown] = [d for d in world.servers.status()["devices"] if d["name"] == device.name]
        equal(shown["sector_bytes"], sector, "sector size in the status")
        equal(shown["mapped_sectors"], 63, "mapped sectors in the status")
    kill(devices[512])
    for sector, device in devices.items():
        world.servers.revive(device)
        h = connect(device)
        for number in range(64):
            expected = bytes(sector) if number == 3 else bytes([number + 1]) * sector
            equal(bytes(h.pread(sector, number * 3 * sector)), expected, f"sector {number * 3} of {sector} bytes")
            equal(bytes(h.pread(sector, (number * 3 + 1) * sector)), bytes(sector), f"the sector after {number * 3}")

    for bad in ["513", "8192", "0", "4096x"]:
        said = world.vsl("create", world.dir / "bad.vsl", "--size", 32 * MIB, "--sector-size", bad, "--yes", fails=True).text
        check(bad in said and "512" in said, f"--sector-size {bad}: the error names neither the value nor what was expected")
        check(not (world.dir / "bad.vsl").exists(), f"--sector-size {bad} left a file behind")
