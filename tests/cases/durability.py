"""Durability modes under a real client: written through, nothing answered is lost when the power goes, without a flush anywhere; a card's power override."""

import random

import nbd

from harness import MIB, Device, World, check, equal
from harness.libnbd import connect

OURS = True
SIZE = 256 * MIB
BLOCK = 4096
BLOCKS = 2000
ROUNDS = 5


def run(world: World) -> None:
    world.servers.up()
    world.vsl("create", world.dir / "disk.vsl", "--size", SIZE, "--drills")
    world.vsl("attach", "disk.vsl")
    device = Device("disk", world.dir / "disk.vsl", SIZE, world.servers.uri("disk"))
    equal(world.vsl("config", "disk", "durability").out, "write-back\n", "the default")
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    held = [bytes(BLOCK)] * BLOCKS

    # What was answered before the mode was set is safe once the setting is answered.
    handle = connect(device)
    for block in range(200):
        held[block] = dice.randbytes(BLOCK)
        handle.pwrite(held[block], block * BLOCK)
    world.vsl("config", "disk", "durability", "write-through")
    cut(world, dice)
    answered = 0
    for number in range(ROUNDS):
        world.vsl("drill", "disk", "power-on")
        equal(world.vsl("status", "disk", "--field", "durability").out, "write-through\n", "the mode after a power cut")
        handle = connect(device)
        for block, data in enumerate(held):
            check(bytes(handle.pread(BLOCK, block * BLOCK)) == data, f"round {number}: block {block} is not what was answered")
        world.vsl("drill", "disk", "power-cut", "--at-program", dice.randint(20, 300), "--unsynced", dice.choice(["drop", "torn", "random"]))
        while True:
            block = dice.randrange(BLOCKS)
            kind = dice.random()
            data = dice.randbytes(BLOCK) if kind < 0.8 else bytes(BLOCK)
            try:
                if kind < 0.8:
                    handle.pwrite(data, block * BLOCK)
                elif kind < 0.9:
                    handle.trim(BLOCK, block * BLOCK)
                else:
                    handle.zero(BLOCK, block * BLOCK)
            except nbd.Error:
                break
            held[block] = data
            answered += 1
        world.wait(lambda: world.servers.state(device) == "powered-off", "the power to go")
        # The one that was not answered may be old or new.
        world.vsl("drill", "disk", "power-on")
        found = bytes(connect(device).pread(BLOCK, block * BLOCK))
        check(found in (held[block], data), f"round {number}: block {block}, which was under way, is neither old nor new")
        held[block] = found
        cut(world, dice)
    world.vsl("drill", "disk", "power-on")
    print(f"figure: requests answered in write-through before a power cut: {answered}, lost: 0")

    world.vsl("config", "disk", "durability", "unsafe")
    handle = connect(device)
    for block in range(64):
        handle.pwrite(b"\x77" * BLOCK, block * BLOCK, nbd.CMD_FLAG_FUA)
    handle.flush()
    world.vsl("drill", "disk", "power-cut", "--unsynced", "drop")
    world.vsl("drill", "disk", "power-on")
    handle = connect(device)
    lost = sum(bytes(handle.pread(BLOCK, block * BLOCK)) == held[block] for block in range(64))
    check(lost > 0, "in the mode unsafe a flush was carried out")

    override(world)


def cut(world: World, dice: random.Random) -> None:
    world.vsl("drill", "disk", "power-cut", "--unsynced", dice.choice(["drop", "torn", "random"]))


def override(world: World) -> None:
    """The limit goes and comes back, at once and with the next attach."""
    world.vsl("create", world.dir / "card.vsl", "--emulate", "iodrive-duo-640-mlc", "--scale", 64, "--module", 0)
    world.vsl("attach", "card.vsl")
    limit = world.vsl("status", "card", "--field", "power_limit_watts").out.strip()
    check(float(limit) > 1, f"a power limit of {limit} W")
    said = world.vsl("config", "card", "durability", "write-through", fails=True).text
    check("capacitors" in said, said)
    world.vsl("config", "card", "power-override", "on")
    for _ in range(2):
        equal(world.vsl("status", "card", "--field", "power_override").out, "true\n", "the override")
        said = world.vsl("status", "card", "--field", "power_limit_watts", fails=True).text
        check("power_limit_watts" in said, said)
        world.vsl("detach", "card")
        world.vsl("attach", "card.vsl")
    world.vsl("config", "card", "power-override", "off")
    equal(world.vsl("status", "card", "--field", "power_limit_watts").out.strip(), limit, "the limit when it counts again")
