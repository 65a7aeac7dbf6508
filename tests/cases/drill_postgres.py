"""The power goes under PostgreSQL on a drill device: nothing it committed is lost, and the check fails where it does without fsync."""

import sys

from harness import World
from harness.bare import TREE

ROOT = True
OURS = True
SLOW = True
LIMIT = 400


def run(world: World) -> None:
    # The server is another user.
    world.dir.chmod(0o711)
    for name, options in [("synced", ["--rounds", 8]), ("unsynced", ["--fsync", "off", "--expect-loss"])]:
        command = [sys.executable, TREE / "examples/drills/postgres.py", "--vsl", world.vsl_path, "--directory", world.dir / name, *options]
        print(f"figure: {name}: {world.run(*command, timeout=200).out.splitlines()[-1]}")
