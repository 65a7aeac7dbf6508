"""Drills on an emulated card: heat and a used-up reserve slow its writes down, both end by command, and a power cut loses nothing answered."""

from harness import MIB, Device, World, check, equal
from harness.fio import fio
from harness.libnbd import connect

OURS = True
BLOCK = 4096


def run(world: World) -> None:
    world.servers.up()
    path = world.dir / "card.vsl"
    world.vsl("create", path, "--emulate", "iodrive-320-mlc", "--scale", 64, "--drills")
    world.vsl("attach", path)
    device = Device("card", path, 0, world.servers.uri("card"))
    cool = rate(world, device, 1)

    world.vsl("drill", "card", "overheat")
    rate(world, device, 3)
    hot = rate(world, device, 1)
    check(hot < cool / 2, f"{cool:.0f} MB/s cool, {hot:.0f} MB/s too hot")
    equal(world.vsl("status", "card", "--field", "drills").out.strip(), "overheat to 79 degrees Celsius", "drills")
    world.vsl("drill", "card", "undo", "overheat")
    world.wait(lambda: rate(world, device, 1) and held(world) == 0, "the card to cool down under writes")
    again = rate(world, device, 1)
    check(again > 2 * hot, f"{hot:.0f} MB/s too hot, {again:.0f} MB/s afterwards")

    world.vsl("drill", "card", "fill-reserve")
    reduced = rate(world, device, 1)
    check(reduced < cool / 2, f"{cool:.0f} MB/s, {reduced:.0f} MB/s with its reserve used up")
    equal(world.vsl("status", "card", "--field", "health").out.strip(), "its reserve is used up: writes are held back", "health")
    world.vsl("drill", "card", "undo", "all")
    equal(held(world), 0, "nanoseconds that a byte is held back when the drill is over")
    check(rate(world, device, 1) > 2 * reduced, "it stays slow when the drill is over")
    print(f"figure: an emulated card writes {cool:.0f} MB/s, too hot {hot:.0f}, afterwards {again:.0f}, with its reserve used up {reduced:.0f}")

    # Behind capacitors what was answered is there, flushed or not.
    handle = connect(device)
    for number in range(300):
        handle.pwrite(number.to_bytes(4, "little") * (BLOCK // 4), number * BLOCK)
    world.vsl("drill", "card", "power-cut", "--unsynced", "drop")
    world.vsl("drill", "card", "power-on")
    handle = connect(device)
    for number in range(300):
        equal(bytes(handle.pread(BLOCK, number * BLOCK)), number.to_bytes(4, "little") * (BLOCK // 4), f"sector {number} after the cut")


def held(world: World) -> float:
    """Nanoseconds by which a written byte is held back."""
    return float(world.vsl("status", "card", "--field", "hold_ns_per_byte").out)


def rate(world: World, device: Device, seconds: int) -> float:
    """Megabytes a second that fio writes."""
    report = fio(world, device, "--rw=write", "--bs=128k", "--iodepth=4", f"--size={256 * MIB}", "--time_based", f"--runtime={seconds}")
    return report["write"]["bw_bytes"] / 1e6
