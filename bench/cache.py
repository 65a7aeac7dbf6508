#!/usr/bin/python3
"""What a miss costs beside the store alone, and what a hit gives beside a device without a cache; fio over NBD, in turn in one run.

The store is nbdkit's, which answers each read after a delay. Every round reads blocks that nobody read before: from the store itself,
through a volume (misses), through the volume once more (hits), and from a device of the same kind that caches nothing.

    bench/cache.py --vsl target/release/vsl --delay 1 5
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from harness import MIB  # noqa: E402
from harness.world import World  # noqa: E402

ROUNDS = 3
BLOCKS = 256
DEPTHS = (1, 8)
PART = 16 * MIB


def latency_us(world: World, uri: str, offset: int, depth: int, size: str = "4k", count: int = BLOCKS) -> float:
    """The mean time of a read of blocks chosen at random in a part of the address space, each once, microseconds."""
    done = world.run("fio", "--name=x", "--ioengine=nbd", f"--uri={uri}", "--rw=randread", f"--bs={size}", f"--offset={offset}", f"--size={PART}",
                     f"--number_ios={count}", f"--iodepth={depth}", "--output-format=json", timeout=600).out
    return json.loads(done[done.index("{"):])["jobs"][0]["read"]["lat_ns"]["mean"] / 1000


def measure(world: World, delay_ms: int) -> list[str]:
    """The rows of a delay."""
    image, socket = world.dir / f"{delay_ms}.img", world.dir / f"{delay_ms}.sock"
    with open(image, "wb") as file:
        file.truncate(1024 * MIB)
    world.start("nbdkit", "-f", "-U", socket, "--filter=delay", "file", image, f"rdelay={delay_ms}ms", log="nbdkit.log")
    world.wait(socket.exists, "nbdkit to listen")
    store, name = f"nbd+unix:///?socket={socket}", f"v{delay_ms}"
    world.vsl("cache", "create", name, "--cache", "fast", "--behind", store)
    rows = []
    offset = 0
    for depth in DEPTHS:
        found: dict[str, list[float]] = {"store": [], "miss": [], "hit": [], "device": []}
        for _ in range(ROUNDS):
            found["store"].append(latency_us(world, store, offset, depth))
            found["miss"].append(latency_us(world, world.servers.uri(name), offset, depth))
            found["hit"].append(latency_us(world, world.servers.uri(name), offset, depth))
            found["device"].append(latency_us(world, world.servers.uri("plain"), offset, depth))
            offset += PART
        store_us, miss, hit, device = (statistics.median(found[one]) for one in ("store", "miss", "hit", "device"))
        rows.append(f"| {delay_ms} ms | {depth} | {store_us:.0f} µs | {miss:.0f} µs | {miss / store_us:.3f} | {hit:.0f} µs | {hit / device:.2f} |")
    world.wait(lambda: not json.loads(world.vsl("--json", "status", name).out)["devices"][0].get("clients"), "the client to be gone")
    world.vsl("cache", "delete", name, "--yes")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, default=HERE.parent / "target/release/vsl")
    parser.add_argument("--tools", type=Path, default=HERE.parent / "target/tools/bin")
    parser.add_argument("--delay", type=int, nargs="+", default=[1, 5, 20], help="milliseconds that the store takes for a read")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="vsl-bench.") as directory:
        os.environ |= {"OPENVSL_RUNTIME_DIR": f"{directory}/run", "OPENVSL_STATE_DIR": f"{directory}/state"}
        world = World(Path(directory), args.vsl.resolve(), "vsl", args.tools.resolve())
        try:
            world.servers.up()
            for name, space in (("fast", ["--address-space", "1PiB"]), ("plain", [])):
                world.vsl("create", world.dir / f"{name}.vsl", "--size", 512 * MIB, *space, "--yes")
                world.vsl("attach", world.dir / f"{name}.vsl", "--name", name)
            world.run("fio", "--name=x", "--ioengine=nbd", f"--uri={world.servers.uri('plain')}", "--rw=write", "--bs=1m", f"--size={512 * MIB}")
            for delay in args.delay:
                rows += measure(world, delay)
        finally:
            world.vsl("down", "--force", fails=None)
    print("| store | depth | store alone | miss | miss / store | hit | hit / device |\n|---|---:|---:|---:|---:|---:|---:|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
