"""Fifty power cuts under SQLite with a write-ahead log, fifty with a rollback journal; and a cache that lies is found out."""

from cases.drill_sqlite import last_line
from harness import World

ROOT = True
OURS = True
SLOW = True
LIMIT = 900


def run(world: World) -> None:
    for what, options, limit in [
        ("write-ahead log", ["--rounds", 50], 300),
        ("rollback journal", ["--rounds", 50, "--journal", "DELETE", "--synchronous", "EXTRA"], 300),
        ("a cache that lies", ["--rounds", 10, "--ignore-flushes", "--expect-loss"], 120),
        ("the directory not synced", ["--rounds", 50, "--journal", "DELETE", "--synchronous", "FULL", "--expect-loss"], 120),
    ]:
        print(f"figure: {what}: {last_line(world, what.replace(' ', '-'), limit, *options)}")
