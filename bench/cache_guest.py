#!/usr/bin/python3
"""Boots a Debian from slow storage with a cache in front of it, and reads its programs: cold, and warm after the service was started anew.

What stands behind is an NBD server that answers each read after a delay and at a limited rate, as a store in another place does. The guest has
no hardware virtualisation, so that even a boot from the page cache, which is measured beside it, takes half a minute.

    scripts/install-debian.sh
    bench/cache_guest.py --vsl target/release/vsl --delay 50 --rate 20
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from harness import MIB, debian  # noqa: E402
from harness.guest import debian_image, nbd_disk  # noqa: E402
from harness.servers import Device  # noqa: E402
from harness.world import World  # noqa: E402

CACHE = 1024 * MIB
# What a server of files or of a database does: reads a lot of small files.
READS = "find /usr /etc /var -xdev -type f -size -256k | head -n 1500 | xargs cat | wc -c"


def measure(world: World, delay_ms: int, mbits: int) -> list[tuple[str, float, float, float]]:
    """For each boot: what it was from, seconds until systemd says that it runs, seconds of reading, hits (per cent)."""
    world.servers.up()
    image, socket = world.dir / "root.img", world.dir / "slow.sock"
    shutil.copyfile(debian_image(world), image)
    world.start("nbdkit", "-f", "-U", socket, "--filter=delay", "--filter=rate", "file", image, f"rdelay={delay_ms}ms", f"rate={mbits}M", log="nbdkit.log")
    world.wait(socket.exists, "nbdkit to listen")
    world.vsl("create", world.dir / "fast.vsl", "--size", CACHE, "--address-space", "1PiB", "--yes")
    world.vsl("attach", world.dir / "fast.vsl", "--name", "fast")
    world.vsl("cache", "create", "root", "--cache", "fast", "--behind", f"nbd+unix:///?socket={socket}", "--mode", "write-back")
    rows = []
    fast = world.dir / "fast.img"
    shutil.copyfile(image, fast)
    local = ["-drive", f"if=none,id=root,file={fast},format=raw", "-device", "virtio-blk-pci,drive=root,serial=root,logical_block_size=4096,physical_block_size=4096"]
    rows.append(("page cache", *boots(world, local), 100.0))
    for what in ("cold", "warm"):
        root = Device("root", image, debian.SIZE, world.servers.uri("root"))
        booted, reads = boots(world, nbd_disk(root, "root"))
        rows.append((what, booted, reads, hit_percent(world)))
        print(f"{what}: hits {rows[-1][3]:.1f} %", flush=True)
        # The cache is warm because it lies on the device, not because the service has something in memory.
        world.wait(lambda: not json.loads(world.vsl("--json", "status", "root").out)["devices"][0].get("clients"), "the guest to be gone")
        world.vsl("down", "--force")
        world.servers.up()
        world.wait(lambda: status(world)["state"] == "healthy", "the volume to be opened")
    return rows


def boots(world: World, disk: list[str]) -> tuple[float, float]:
    """Seconds until the guest runs, and of reading."""
    began = time.monotonic()
    with debian.boot(world, *disk) as guest:
        booted = time.monotonic()
        guest.run("echo 3 >/proc/sys/vm/drop_caches")
        reading = time.monotonic()
        guest.run(READS, timeout=900)
        ended = time.monotonic()
    print(f"boot {booted - began:.1f} s, reads {ended - reading:.1f} s", flush=True)
    return booted - began, ended - reading


def status(world: World) -> dict:
    return json.loads(world.vsl("--json", "cache", "status", "root").out)


def hit_percent(world: World) -> float:
    seen = status(world)
    return 100 * seen["hit_bytes"] / max(seen["hit_bytes"] + seen["missed_bytes"], 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, default=HERE.parent / "target/release/vsl")
    parser.add_argument("--tools", type=Path, default=HERE.parent / "target/tools/bin")
    parser.add_argument("--delay", type=int, default=50, help="milliseconds that the store takes for a read")
    parser.add_argument("--rate", type=int, default=20, help="megabits a second that the store gives")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vsl-bench.") as directory:
        os.environ |= {"OPENVSL_RUNTIME_DIR": f"{directory}/run", "OPENVSL_STATE_DIR": f"{directory}/state"}
        world = World(Path(directory), args.vsl.resolve(), "vsl", args.tools.resolve())
        try:
            base, cold, warm = measure(world, args.delay, args.rate)
        finally:
            world.vsl("down", "--force", fails=None)
    print(f"\n| root on | boot | 1,500 small files |\n|---|---:|---:|")
    for what, (_, boot, reads, _) in (("the page cache", base), (f"a store {args.delay} ms away, {args.rate} Mbit/s, cold cache", cold), ("the same, warm cache", warm)):
        print(f"| {what} | {boot:.1f} s | {reads:.1f} s |")
    print(f"| cold / warm | {cold[1] / warm[1]:.1f} | {cold[2] / warm[2]:.1f} |")


if __name__ == "__main__":
    main()
