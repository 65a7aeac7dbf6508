"""Arrays that get one more member in use: stamped writes while RAID 0 lays its stripes out anew and the service is killed in the middle, a concatenation killed while a device is added, a third copy of a mirror, and what is refused."""

from harness import MIB, World, check, equal
from harness.arrays import array, create, shown, status
from harness.libnbd import connect
from harness.servers import kill
from harness.stamps import BLOCK, Writer

OURS = True
SIZE = 48 * MIB


def run(world: World) -> None:
    world.servers.up()
    for name in ("a", "b", "c", "d"):
        world.device(SIZE, name)
    create(world, "wide", "raid0", "a", "b")
    refusals(world)
    stripes(world)
    world.vsl("array", "delete", "wide", "--yes")
    create(world, "long", "concat", "a", "b")
    killed_in_the_middle(world)
    world.vsl("array", "delete", "long", "--yes")
    create(world, "safe", "raid1", "a", "b")
    third_copy(world)


def refusals(world: World) -> None:
    """What cannot be added is refused with the reason, and nothing has changed."""
    before = status(world, "wide")
    world.vsl("create", world.dir / "small.vsl", "--size", 8 * MIB, "--yes")
    world.vsl("attach", world.dir / "small.vsl", "--name", "small")
    world.vsl("create", world.dir / "sectors.vsl", "--size", SIZE, "--sector-size", 512, "--yes")
    world.vsl("attach", world.dir / "sectors.vsl", "--name", "sectors")
    handle = connect(array(world, "d"))
    said = world.vsl("array", "add", "wide", "d", fails=True).text
    check("client(s) connected" in said, said)
    handle.pwrite(b"\x55" * BLOCK, 0)
    handle.flush()
    handle.shutdown()
    world.wait(lambda: not shown(world, "d").get("clients"), "the client to be gone")
    for device, why in (("small", "expected"), ("sectors", "sectors has sectors of 512 bytes"),
                        ("a", "is a member of the array"), ("wide", "is an array"), ("nowhere", "no attached device"),
                        ("d", "holds data")):
        said = world.vsl("array", "add", "wide", device, fails=True).text
        check(why in said, said)
    equal(status(world, "wide"), before, "the array after refusals")
    equal(bytes(connect(array(world, "d")).pread(BLOCK, 0)), b"\x55" * BLOCK, "what d holds after refusals")
    world.wait(lambda: not shown(world, "d").get("clients"), "the client to be gone")


def stripes(world: World) -> None:
    """RAID 0 lays its stripes out over a third member under stamped writes, and goes on behind a kill."""
    device = array(world, "wide")
    untorn = status(world, "wide")["max_request_bytes"]
    writer = Writer(device.size // BLOCK, 11, untorn // BLOCK)
    adds = world.start(world.vsl_path, "array", "add", "wide", "c", log="add.log")

    def killed() -> None:
        adds.wait(30)
        state = status(world, "wide")
        check(state["state"] == "reshaping" and state["reshape_percent"] < 100, f"killed too late: {state}")
        kill(device)

    writer.run(lambda: connect(device), 24, 1.0, killed)
    world.servers.revive(device)
    writer.verify(connect(device))
    world.wait(lambda: status(world, "wide")["state"] == "healthy", "all stripes to be laid out anew", 60)
    world.wait(lambda: shown(world, "wide")["bytes"] > device.size, "the array to be larger")
    grown = array(world, "wide")
    equal(grown.size, device.size // 2 * 3, "size of three members")
    equal([member["name"] for member in status(world, "wide")["members"]], ["a", "b", "c"], "members")
    handle = connect(grown)
    writer.verify(handle)
    for at in range(device.size, grown.size, MIB):
        check(not any(handle.pread(min(MIB, grown.size - at), at)), "what is new does not read as zeros")
    handle.pwrite(b"\x66" * BLOCK, grown.size - BLOCK)
    handle.flush()
    equal(bytes(handle.pread(BLOCK, grown.size - BLOCK)), b"\x66" * BLOCK, "the last block")
    handle.shutdown()
    world.wait(lambda: "resized" in world.vsl("events", "wide").out, "the new size to be an event")
    world.wait(lambda: not shown(world, "wide").get("clients"), "the clients to be gone")


def killed_in_the_middle(world: World) -> None:
    """Killed while a device is added, the service finds it a member or free; added then, it is one at once."""
    device = array(world, "long")
    handle = connect(device)
    handle.pwrite(b"\x77" * MIB, device.size - MIB)
    handle.flush()
    handle.shutdown()
    world.start(world.vsl_path, "array", "add", "long", "c", "--force", log="add.log")
    kill(device)
    world.servers.revive(device)
    names = [member["name"] for member in status(world, "long")["members"]]
    if names != ["a", "b", "c"]:
        equal(names, ["a", "b"], "members after a kill")
        world.wait(lambda: shown(world, "c")["state"] == "attached", "c to be attached")
        world.vsl("array", "add", "long", "c", "--force")
    equal(array(world, "long").size, device.size // 2 * 3, "size of three members")
    handle = connect(array(world, "long"))
    equal(bytes(handle.pread(MIB, device.size - MIB)), b"\x77" * MIB, "what was written before")
    handle.pwrite(b"\x78" * MIB, device.size)
    handle.shutdown()
    world.wait(lambda: not shown(world, "long").get("clients"), "the clients to be gone")


def third_copy(world: World) -> None:
    """A mirror of two gets a third copy, with what is mapped and no more."""
    handle = connect(array(world, "safe"))
    content = bytes(number % 251 for number in range(4 * MIB))
    handle.pwrite(content, 8 * MIB)
    handle.flush()
    world.vsl("array", "add", "safe", "d", "--force")
    said = world.vsl("array", "add", "safe", "c", fails=True).text
    check("RAID 1 takes 2 to 3" in said, said)
    world.wait(lambda: status(world, "safe")["state"] == "healthy", "the third copy to have everything")
    equal([member["name"] for member in status(world, "safe")["members"]], ["a", "b", "d"], "members")
    equal(status(world, "safe")["copied_bytes"], len(content), "bytes copied")
    check("member-added" in world.vsl("events", "safe").out, "the third copy is no event")
    handle.shutdown()
    world.wait(lambda: not shown(world, "safe").get("clients"), "the client to be gone")
    world.vsl("array", "delete", "safe", "--yes")
    equal(bytes(connect(array(world, "d")).pread(4 * MIB, 8 * MIB)), content, "what the third copy holds")
