"""nbdinfo sees size, flags, block sizes, the list of exports and which parts are allocated."""

import json

from harness import KIB, MIB, World, check, equal

OURS = True


def run(world: World) -> None:
    disk = world.device(64 * MIB, "disk")
    other = world.device(32 * MIB, "other", sector=512)

    equal(world.run("nbdinfo", "--size", disk.uri).out.strip(), str(64 * MIB), "nbdinfo --size")
    for device, sector in [(disk, 4096), (other, 512)]:
        shown = json.loads(world.run("nbdinfo", "--json", device.uri).out)
        check(shown["structured"], "no structured replies")
        [export] = shown["exports"]
        equal(export["export-size"], device.size, "export size")
        for flag in ["can_cache", "can_df", "can_fast_zero", "can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero"]:
            check(export[flag], f"{device.name}: {flag} is not offered")
        check(not export["is_read_only"] and not export["is_rotational"], "read-only, or rotational")
        check("base:allocation" in export["contexts"], "no base:allocation")
        equal(export["block_size_minimum"], sector, "smallest block")
        check(export["block_size_preferred"] % 4096 == 0, f"preferred block {export['block_size_preferred']}")
        check(export["block_size_maximum"] >= MIB, f"largest request {export['block_size_maximum']}")

    listed = json.loads(world.run("nbdinfo", "--list", "--json", disk.uri).out)["exports"]
    check("disk" in [export["export-name"] for export in listed], f"the list of exports lacks disk: {listed}")

    equal(extents(world, disk.uri), [(0, 64 * MIB, 3)], "allocation of a new device")
    world.run("qemu-io", "-f", "raw", "-c", "write -P 1 1M 256k", "-c", "discard 1088k 64k", disk.uri)
    expected = [
        (0, MIB, 3),
        (MIB, 64 * KIB, 0),
        (MIB + 64 * KIB, 64 * KIB, 3),
        (MIB + 128 * KIB, 128 * KIB, 0),
        (MIB + 256 * KIB, 63 * MIB - 256 * KIB, 3),
    ]
    equal(extents(world, disk.uri), expected, "allocation after a write and a discard")


def extents(world: World, uri: str) -> list[tuple[int, int, int]]:
    """The map as (offset, length, type); 0 is data, 3 a hole that reads as zeros. Neighbours of a type are joined."""
    joined: list[tuple[int, int, int]] = []
    for part in json.loads(world.run("nbdinfo", "--map", "--json", uri).out):
        if joined and joined[-1][2] == part["type"]:
            offset, length, kind = joined.pop()
            joined.append((offset, length + part["length"], kind))
        else:
            joined.append((part["offset"], part["length"], part["type"]))
    return joined
