"""Drills on an emulated card: heat and a used-up reserve slow its writes down, both end by command; a power cut, a dead die and old data lose nothing answered."""

import nbd

from harness import MIB, Device, World, check, equal
from harness.fio import fio
from harness.libnbd import connect
from harness.servers import kill

OURS = True
CHUNK = 65536
# Several rows of pages over the card's hundred dies: in a single row a die may hold nothing but parity.
CHUNKS = 100


def run(world: World) -> None:
    world.servers.up()
    path = world.dir / "card.vsl"
    world.vsl("create", path, "--emulate", "iodrive-320-mlc", "--scale", 64, "--drills")
    world.vsl("attach", path)
    device = Device("card", path, 0, world.servers.uri("card"))
    equal(held(world), 0, "nanoseconds that a byte is held back in the beginning")

    world.vsl("drill", "card", "overheat")
    world.wait(lambda: rate(world, device) and held(world) > 50, "the card to hold writes back")
    equal(world.vsl("status", "card", "--field", "drills").out.strip(), "overheat to 79 degrees Celsius", "drills")
    equal(world.vsl("status", "card", "--field", "health").out.strip(), "too warm: writes are held back", "health")
    most, hot = 1e9 / held(world), rate(world, device)
    # It only gets more; what was under way when the second began counts too.
    check(hot < 1.5 * most, f"{hot:.0f} bytes a second, where at most {most:.0f} are let through")
    world.vsl("drill", "card", "undo", "overheat")
    world.wait(lambda: rate(world, device) and held(world) == 0, "the card to let go under writes")

    world.vsl("drill", "card", "fill-reserve")
    most, reduced = 1e9 / held(world), rate(world, device)
    check(reduced < 1.5 * most, f"{reduced:.0f} bytes a second with the reserve used up, where at most {most:.0f} are let through")
    equal(world.vsl("status", "card", "--field", "health").out.strip(), "its reserve is used up: writes are held back", "health")
    world.vsl("drill", "card", "undo", "all")
    equal(held(world), 0, "nanoseconds that a byte is held back when the drill is over")

    # Behind capacitors what was answered is there, flushed or not.
    handle = connect(device)
    for number in range(CHUNKS):
        handle.pwrite(chunk(number), number * CHUNK)
    world.vsl("drill", "card", "power-cut", "--unsynced", "drop")
    world.vsl("drill", "card", "power-on")
    handle = connect(device)
    for number in range(CHUNKS):
        equal(bytes(handle.pread(CHUNK, number * CHUNK)), chunk(number), f"chunk {number} after the cut")

    # Its parity makes up for a die.
    world.vsl("drill", "card", "kill-die", 0)
    for number in range(CHUNKS):
        equal(bytes(handle.pread(CHUNK, number * CHUNK)), chunk(number), f"chunk {number} without die 0")
    equal(world.vsl("status", "card", "--field", "lost_dies").out.strip(), "0", "dies out of service")
    check(int(world.vsl("status", "card", "--field", "degraded_reads").out) > 0, "no sector stood on die 0")
    equal(world.vsl("status", "card", "--field", "parity_chips").out.strip(), "24 + 1", "Flashback")
    # And for the rest of its chip, but for no second one.
    world.vsl("drill", "card", "kill-chip", 0)
    for number in range(CHUNKS):
        equal(bytes(handle.pread(CHUNK, number * CHUNK)), chunk(number), f"chunk {number} without chip 0")
    equal(world.vsl("status", "card", "--field", "health").out.strip(), "degraded: chip 0 of 25 out of service", "health")
    world.vsl("drill", "card", "kill-chip", 1)
    check("failed: 2 of 25 chips" in world.vsl("status", "card", "--field", "health").out, "two chips are more than parity makes up for")
    world.vsl("drill", "card", "undo", "kill-chip")
    world.vsl("drill", "card", "undo", "kill-die")
    equal(world.vsl("status", "card", "--field", "health").out.strip(), "healthy", "health with die 0 back")
    # Its client is still there.
    world.vsl("detach", "card", "--force")
    aged(world)
    adaptive(world)


def aged(world: World) -> None:
    """A drive of three-bit cells whose data are ten years old: they are read again and again, and are what they were."""
    _, handle = written(world, "old", "samsung-pm9a3-960", 144)

    def retries() -> int:
        before = int(world.vsl("status", "old", "--field", "read_retries").out)
        for number in range(CHUNKS):
            equal(bytes(handle.pread(CHUNK, number * CHUNK)), chunk(number), f"chunk {number} of old data")
        return int(world.vsl("status", "old", "--field", "read_retries").out) - before

    equal(retries(), 0, "retries of new data")
    said = world.vsl("drill", "old", "age", "--days", 3650).out
    check("3650 days older" in said, said)
    check(retries() > CHUNKS, "old data took hardly a retry")
    for number in range(CHUNKS):
        handle.pwrite(chunk(number), number * CHUNK)
    handle.flush()
    world.vsl("drill", "old", "undo", "age")
    equal(retries(), 0, "retries when the drill is over")
    world.vsl("detach", "old", "--force")


def adaptive(world: World) -> None:
    """A card of the second generation: it goes on without a chip, over the death of the service, and then without another."""
    device, _ = written(world, "second", "iodrive2-1200-mlc", 64)
    said = world.vsl("drill", "second", "kill-chip", 7).out
    check("is rebuilt over the 24 that are left" in said, said)
    equal(world.vsl("status", "second", "--field", "parity_chips").out.strip(), "23 + 1", "Flashback without a chip")
    kill(device)
    world.servers.revive(device)
    for chips, parity in [("7", "23 + 1"), ("7, 9", "22 + 1")]:
        world.wait(lambda: world.vsl("status", "second", "--field", "health").out.strip() == "healthy", "the card to be protected again")
        equal(world.vsl("status", "second", "--field", "given_up_chips").out.strip(), chips, "chips given up")
        equal(world.vsl("status", "second", "--field", "parity_chips").out.strip(), parity, "Flashback")
        handle = connect(device)
        for number in range(5 * CHUNKS):
            equal(bytes(handle.pread(CHUNK, number * CHUNK)), chunk(number), f"chunk {number} without chips {chips}")
        if chips == "7":
            world.vsl("drill", "second", "kill-chip", 9)
    # What a device noticed by itself is looked for each second.
    world.wait(lambda: {"chip-lost", "protected"} <= set(world.vsl("events", "second").out.split()), "the events of the second chip")
    refused = world.vsl("rebuild", "second", 9, fails=True)
    check("a card with adaptive Flashback rebuilds what a lost chip held by itself" in refused.err, refused.err)


def written(world: World, name: str, sheet: str, scale: int) -> tuple[Device, nbd.NBD]:
    """An emulated card for drills, attached, with chunks on it, and the client that wrote them."""
    path = world.dir / f"{name}.vsl"
    world.vsl("create", path, "--emulate", sheet, "--scale", scale, "--drills")
    world.vsl("attach", path)
    device = Device(name, path, 0, world.servers.uri(name))
    handle = connect(device)
    for number in range(5 * CHUNKS):
        handle.pwrite(chunk(number), number * CHUNK)
    handle.flush()
    return device, handle


def chunk(number: int) -> bytes:
    """What is written to a chunk."""
    return number.to_bytes(4, "little") * (CHUNK // 4)


def held(world: World) -> float:
    """Nanoseconds by which a written byte is held back."""
    return float(world.vsl("status", "card", "--field", "hold_ns_per_byte").out)


def rate(world: World, device: Device) -> float:
    """Bytes a second that fio writes in a second."""
    report = fio(world, device, "--rw=write", "--bs=64k", "--iodepth=2", f"--size={256 * MIB}", "--time_based", "--runtime=1")
    return report["write"]["bw_bytes"]
