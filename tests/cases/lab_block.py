"""vsl lab on a block device: what is mounted is refused, what is on it is asked for by name, and then it is purged and measured."""

import re

from harness import MIB, World, check, equal
from harness.lab import journal

ROOT = True
OURS = True

PROTOCOL = """
name = "small"
title = "Small"
description = "Writes"
follows = "Nobody"
[[test]]
name = "writes"
title = "Writes"
workload = "random-write-4k"
[[test.stage]]
name = "measure"
role = "measure"
threads = 1
depth = 4
duration = "500ms"
"""


def run(world: World) -> None:
    protocol, image, mount = world.dir / "small.toml", world.dir / "image", world.dir / "mnt"
    protocol.write_text(PROTOCOL)
    with open(image, "wb") as file:
        file.truncate(64 * MIB)
    loop = world.run("losetup", "--find", "--show", image).out.strip()
    try:
        world.run("mkfs.ext4", "-q", loop)
        mount.mkdir()
        world.run("mount", loop, mount)
        try:
            (mount / "precious").write_text("precious")
            said = lab(world, loop, "mounted", "--yes", fails=True)
            check(f"it is mounted at {mount}" in said, f"--yes went over a mounted file system: {said}")
            equal((mount / "precious").read_text(), "precious", "what was on it")
        finally:
            world.run("umount", mount)
        said = lab(world, loop, "asked", fails=True)
        check(f"everything on the block device {loop}" in said, f"the device is not named: {said}")
        check("ext4" in said, f"what is on it is not said: {said}")
        world.run("e2fsck", "-f", "-n", loop)

        lab(world, loop, "run", "--yes")
        lines = journal(world.dir / "run")
        begin = next(line for line in lines if line["kind"] == "begin")
        equal((begin["machine"]["target"], begin["machine"]["bytes"]), ("block-device", 64 * MIB), "machine")
        check(re.search("trimmed", begin["purge"]) is not None, f"how it was purged: {begin['purge']}")
        equal(lines[-1]["kind"], "finished", "last line")
        check(world.run("blkid", "-p", loop, fails=None).code != 0, "the file system survived a purge")
    finally:
        world.run("losetup", "--detach", loop)


def lab(world: World, device: str, out: str, *options: str, fails: bool = False) -> str:
    """Runs the protocol on the device; what was said."""
    command = ["lab", "run", world.dir / "small.toml", "--device", f"fio:{device}", "--out", world.dir / out, "--full", *options]
    return world.vsl(*command, fails=fails).text
