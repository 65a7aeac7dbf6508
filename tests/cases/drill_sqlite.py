"""The power goes under SQLite on a drill device: nothing it committed is lost, and the check fails where SQLite does without fsync."""

import sys
from pathlib import Path

from harness import World

ROOT = True
OURS = True
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "drills" / "sqlite.py"


def run(world: World) -> None:
    print(f"figure: {last_line(world, 'synced', 60, '--rounds', 3)}")
    print(f"figure: without fsync: {last_line(world, 'unsynced', 60, '--rounds', 3, '--synchronous', 'OFF', '--expect-loss')}")


def last_line(world: World, name: str, seconds: float, *options: object) -> str:
    """What the example says in the end."""
    directory = world.dir / name
    return world.run(sys.executable, EXAMPLE, "--vsl", world.vsl_path, "--directory", directory, *options, timeout=seconds).out.splitlines()[-1]
