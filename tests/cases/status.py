"""vsl status: JSON with every figure, counters that match what a client did, one field by name, and memory within its bound."""

import json

from harness import GIB, KIB, MIB, World, check, equal
from harness.libnbd import connect

OURS = True
FIELDS = [
    "name", "path", "uri", "state", "health", "uuid", "label", "format_version", "sector_bytes", "sectors", "bytes", "raw_bytes",
    "reads", "writes", "flushes", "trims", "host_read_bytes", "host_written_bytes", "media_written_bytes", "mapped_sectors",
    "map_memory_bytes", "memory_bytes", "free_lebs", "lebs", "clients", "max_request_bytes",
]


def run(world: World) -> None:
    device = world.device(1 * GIB)

    def status() -> dict:
        [shown] = [d for d in world.servers.status()["devices"] if d["name"] == device.name]
        return shown

    before = status()
    missing = [name for name in FIELDS if name not in before]
    check(not missing, f"vsl status --json lacks {missing}; it has {sorted(before)}")
    equal((before["state"], before["health"], before["bytes"]), ("attached", "healthy", 1 * GIB), "state of a new device")
    equal(before["mapped_sectors"], 0, "mapped sectors of a new device")
    check(before["max_request_bytes"] >= MIB, f"largest request: {before['max_request_bytes']}")

    h = connect(device)
    for number in range(64):
        h.pwrite(b"\x01" * (256 * KIB), number * 256 * KIB)
    h.pread(64 * KIB, 0)
    h.trim(MIB, 0)
    h.flush()
    after = status()
    equal(after["writes"] - before["writes"], 64, "writes")
    equal(after["reads"] - before["reads"], 1, "reads")
    equal(after["trims"] - before["trims"], 1, "trims")
    equal(after["flushes"] - before["flushes"], 1, "flushes")
    equal(after["host_written_bytes"] - before["host_written_bytes"], 16 * MIB, "bytes written by the host")
    equal(after["host_read_bytes"] - before["host_read_bytes"], 64 * KIB, "bytes read by the host")
    equal(after["mapped_sectors"], 15 * MIB // 4096, "mapped sectors")
    check(after["media_written_bytes"] >= 16 * MIB, f"only {after['media_written_bytes']} bytes reached media")
    equal(len(after["clients"]), 1, "connected clients")

    one = world.vsl("status", device.name, "--field", "sectors").out.strip()
    equal(one, str(1 * GIB // 4096), "one field by name")
    check("healthy" in world.vsl("status", "-a").out, "status -a does not tell the health")
    unknown = world.vsl("status", device.name, "--field", "colour", fails=True).text
    check("colour" in unknown, "an unknown field is not named")

    for number in range(64, 4096):
        h.pwrite(b"\x02" * (256 * KIB), number * 256 * KIB)
    full = status()
    equal(full["mapped_sectors"], (1 * GIB - MIB) // 4096, "mapped sectors of a device written almost once over")
    per_sector = full["map_memory_bytes"] / full["mapped_sectors"]
    check(per_sector <= 5, f"{per_sector:.2f} bytes of map memory for each mapped sector: at most 5 are promised")
    h.shutdown()
    del h
    world.vsl("detach", device.name, "--force")
    detached = json.loads(world.vsl("status", "--json", device.path).out)
    check(device.path.name in json.dumps(detached), "status of a detached device by its path")
