"""SQLite's own test programs on the VFS: speedtest1 with its verification, kvtest, and what threadtest3 has for rollback journals."""

import os
import subprocess

from harness import GIB, World, check, equal

OURS = True
SLOW = True
LIMIT = 900
# Its tests in WAL mode need several connections, which the VFS does not have there.
THREADS = ["create_drop_index_1", "lookaside1", "vacuum1", "stress1", "stress2", "shared1"]


def run(world: World) -> None:
    world.vsl("create", world.dir / "files.vsl", "--size", GIB, "--address-space", "1TiB")
    for number, options in enumerate([[], ["--journal", "wal", "--exclusive"], ["--pagesize", 512, "--autovacuum"], ["--without-rowid", "--pagesize", 65536]]):
        said = sqlite(world, "speedtest1", f"speed{number}.db", "--size", 20, "--verify", *options)
        plain = [line for line in said if "Verification Hash" in line]
        equal(len(plain), 1, "verification hashes")
        expected = [line for line in sqlite(world, "speedtest1", "--memdb", "--size", 20, "--verify", *options) if "Verification Hash" in line]
        equal(plain, expected, f"hash of speedtest1 {options}")
    # It looks for the file by its name before SQLite does.
    sqlite(world, "kvtest", "init", "kv.db", "--count", 5000, "--size", 10000, "--variance", 2000)
    (world.dir / "kv.db").touch()
    for options in [[], ["--blob-api"], ["--random", "--update"], ["--desc", "--multitrans", "--update"]]:
        sqlite(world, "kvtest", "run", "kv.db", "--count", 5000, "--integrity-check", *options)
    for name in THREADS:
        said = sqlite(world, "threadtest3", name)
        check(said[-1].startswith("0 errors"), f"threadtest3 {name}: {said[-1]}")


def sqlite(world: World, program: str, *arguments: object) -> list[str]:
    """Lines of one of the programs."""
    environment = os.environ | {"OPENVSL_DEVICE": str(world.dir / "files.vsl"), "OPENVSL_EXTENSION": str(world.vsl_path.parent / "libopenvsl_files.so")}
    words = [str(word) for word in [world.tool(program), *arguments]]
    done = subprocess.run(words, env=environment, cwd=world.dir, capture_output=True, text=True, timeout=300)
    print("$", " ".join(words), done.stdout, done.stderr, flush=True)
    equal(done.returncode, 0, f"exit code of {program}")
    return done.stdout.splitlines()
