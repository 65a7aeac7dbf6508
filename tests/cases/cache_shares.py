"""Two cached volumes share a cache device on the real service: held by shares, kept below a limit that is set, lifted and remembered over a restart, and what is refused."""

import json
import os

from harness import MIB, World, check, equal
from harness.caches import shown, status, volume
from harness.libnbd import connect

OURS = True
CACHE = 192 * MIB
SIZE = 256 * MIB
LIMIT = 24 * MIB
# An erase block, and what the groomer has not taken yet.
SLACK = 6 * MIB


def run(world: World) -> None:
    world.servers.up()
    world.vsl("create", world.dir / "fast.vsl", "--size", CACHE, "--address-space", "1PiB", "--yes")
    world.vsl("attach", world.dir / "fast.vsl", "--name", "fast")
    for name in ("a", "b"):
        (world.dir / f"{name}.img").write_bytes(os.urandom(SIZE))
    create = ("cache", "create", "a", "--cache", "fast", "--behind", world.dir / "a.img")
    for wanted, words in (
        (("--limit", "1MiB"), "too small a limit"),
        (("--share", "0"), "0 is not in 1..=1000"),
        (("--share", "1001"), "1001 is not in 1..=1000"),
    ):
        said = world.vsl(*create, *wanted, fails=True).text
        check(words in said, said)
    equal(json.loads(world.vsl("--json", "cache", "list").out)["caches"], [], "volumes after refusals")
    world.vsl(*create, "--limit", LIMIT, "--mode", "write-back")
    world.vsl("cache", "create", "b", "--cache", "fast", "--behind", world.dir / "b.img", "--share", 300)
    limited(world)
    shared(world)
    remembered(world)


def limited(world: World) -> None:
    """The limit holds where there is room, and where there is none."""
    equal(status(world, "a")["dirty_limit_bytes"] // 4096, LIMIT // 4096 // 5, "a fifth of the limit may be dirty")
    reads(world, ("a",))
    seen = status(world, "a")
    check(LIMIT - SLACK <= seen["cached_bytes"] <= LIMIT + SLACK, f"what a holds alone: {seen}")
    handle = connect(volume(world, "a"))
    for at in range(0, SIZE // 2, MIB):
        handle.pwrite(os.urandom(MIB), at)
    handle.shutdown()
    seen = status(world, "a")
    check(seen["cached_bytes"] <= LIMIT + SLACK, f"what a holds that was written: {seen}")
    reads(world, ("a", "b"), 2)
    seen, other = status(world, "a"), status(world, "b")
    check(seen["cached_bytes"] <= LIMIT + SLACK, f"what a holds beside b: {seen}")
    check(other["cached_bytes"] >= 3 * LIMIT, f"b has the rest: {other}")
    listed = world.vsl("cache", "list").out
    check("25.17 MB" in listed and " 300 " in listed, listed)


def shared(world: World) -> None:
    """Without limits shares say who holds how much."""
    said = world.vsl("cache", "set", "a", "--limit", "1MiB", fails=True).text
    check("too small a limit" in said, said)
    said = world.vsl("cache", "set", "nothing", "--share", 7, fails=True).text
    check("no cached volume is called 'nothing'" in said, said)
    equal(status(world, "a")["limit_bytes"], LIMIT, "the limit after refusals")
    world.vsl("cache", "set", "a", "--limit", "none", "--share", 400)
    world.vsl("cache", "set", "b", "--share", 100)
    check("limit_bytes" not in status(world, "a"), "there is a limit yet")
    reads(world, ("a", "b"), 6)
    held = [status(world, name)["cached_bytes"] for name in ("a", "b")]
    # Neither reads anything again before it is gone, and there are too few erase blocks to write the volumes apart.
    check(1.5 * held[1] <= held[0], f"a has four times the share of b, and they hold {held}")


def remembered(world: World) -> None:
    """Shares and limits are those of before after a restart."""
    world.vsl("cache", "set", "b", "--limit", LIMIT)
    before = [(seen["share"], seen.get("limit_bytes")) for seen in (status(world, "a"), status(world, "b"))]
    equal(before, [(400, None), (100, LIMIT)], "shares and limits")
    world.vsl("down", "--force")
    world.servers.up()
    for name in ("a", "b"):
        world.wait(lambda name=name: status(world, name)["state"] == "healthy", "the volume to be opened")
    equal([(seen["share"], seen.get("limit_bytes")) for seen in (status(world, "a"), status(world, "b"))], before, "after a restart")
    reads(world, ("b",))
    seen = status(world, "b")
    check(seen["cached_bytes"] <= LIMIT + SLACK, f"what b holds after a restart: {seen}")
    world.vsl("cache", "flush", "a")
    world.vsl("cache", "delete", "a", "--yes")
    world.vsl("cache", "set", "b", "--limit", "none")
    reads(world, ("b",))
    check(status(world, "b")["cached_bytes"] > 3 * LIMIT, "b does not have the room of a, which is gone")


def reads(world: World, names: tuple[str, ...], rounds: int = 1) -> None:
    """Each volume is read as a whole, a piece of each in turn."""
    handles = [connect(volume(world, name)) for name in names]
    for _ in range(rounds):
        for at in range(0, SIZE, MIB):
            for handle in handles:
                handle.pread(MIB, at)
    for handle in handles:
        handle.shutdown()
    for name in names:
        world.wait(lambda name=name: not shown(world, name).get("clients"), "the clients to be gone")
