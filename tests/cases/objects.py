"""A device on objects: nothing flushed is lost with its journal, another host takes it over from the store, and the first one is fenced."""

import errno
import json
import os
import random
import signal
import socket
import urllib.request
from pathlib import Path

from harness import MIB, World, check, equal
from harness.careless import CarelessProxy
from harness.libnbd import connect, refused
from harness.servers import Device, answers, kill

OURS = True
LIMIT = 300
SIZE = 256 * MIB
BLOCK = 64 << 10
BLOCKS = 400


def run(world: World) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    world.servers.up()
    directory = world.dir / "objects" / "of a device"
    with_kills(world, f"file://{str(directory).replace(' ', '%20')}", [], dice)
    endpoint, server = bucket(world)
    address = "s3://bucket/made/here"
    world.vsl("create", world.dir / "none.vsl", "--size", SIZE, "--objects", "s3://nowhere/x", "--endpoint", endpoint, fails=True)
    check(not (world.dir / "none.vsl").exists(), "a device that could not be made left a file")
    careless(world, endpoint)
    silent(world, address, ["--endpoint", endpoint], server, dice)


def bucket(world: World) -> tuple[str, object]:
    """Starts a server of Amazon's protocol that others wrote, and makes a bucket."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_REGION="us-east-1")
    server = world.start(world.tool("moto_server"), "-H", "127.0.0.1", "-p", port, log="moto.log")
    endpoint = f"http://127.0.0.1:{port}"

    def is_made() -> bool:
        try:
            request = urllib.request.Request(f"{endpoint}/bucket", method="PUT")
            return urllib.request.urlopen(request, timeout=5).status == 200
        except OSError:
            return False

    world.wait(is_made, "a bucket", seconds=60)
    # The service was started before there were credentials.
    world.vsl("down")
    world.servers.up()
    return endpoint, server


def careless(world: World, endpoint: str) -> None:
    """A server that ignores conditions: no device is made there, none is attached there, and nothing is changed."""
    address, journal = "s3://bucket/careless", world.dir / "careless.vsl"
    with CarelessProxy(int(endpoint.rpartition(":")[2])) as proxy:
        said = world.vsl("create", journal, "--size", SIZE, "--objects", address, "--endpoint", proxy.endpoint, fails=True).text
        check("ignores the condition `If-None-Match`" in said and proxy.endpoint in said and "412" in said, said)
        check(not journal.exists(), "a device that could not be made left a file")
        said = world.vsl("objects", address, "--endpoint", endpoint, fails=True).text
        check("anchor" in said or "no device" in said, said)
        world.vsl("create", journal, "--size", SIZE, "--objects", address, "--endpoint", endpoint)
        world.vsl("attach", journal, "--name", "careless")
        world.vsl("detach", "careless")
        new = world.dir / "careless-b.vsl"
        said = world.vsl("attach", new, "--name", "b", "--objects", address, "--endpoint", proxy.endpoint, fails=True).text
        check("ignores the condition `If-Match`" in said and proxy.endpoint in said, said)
        check(not new.exists(), "a refused attach left a journal")
    # The refusal left the device as it was released, so any host gets it.
    world.vsl("attach", new, "--name", "b", "--objects", address, "--endpoint", endpoint)
    world.vsl("detach", "b")


def with_kills(world: World, address: str, options: list[object], dice: random.Random) -> None:
    """A directory as the store: kills of the service, and a take-over by another one."""
    device, held = made(world, "one", address, options)
    flushed = dict(held)
    for _ in range(4):
        change(device, held, dice, 60)
        flushed.update(held)
        change(device, held, dice, 10, flush=False)
        kill(device)
        world.servers.revive(device)
        # What was answered outlives the process, flushed or not.
        compare(device, held)
    settle(world, "one")
    priced(world, device)
    change(device, held, dice, 5)
    settle(world, "one")
    check(figure(world, "one", "objects_puts") > 0, "what was written was put nowhere")
    world.vsl("config", "one", "durability", "remote")
    change(device, held, dice, 20)
    # What was flushed is in the store when the flush is answered: the take-over finds it.
    taken(world, device, held, address, options, dice)


def priced(world: World, device: Device) -> None:
    """Prices of the store are kept beside the journal, and survive the service; what states none is refused."""
    prices = lambda: world.vsl("config", "one", "object-prices").text.strip()
    equal(prices(), "none", "prices of a directory")
    said = world.vsl("config", "one", "object-prices", "put=1,get=2", fails=True).text
    check("'put=1,get=2' states no prices" in said and "egress=USD" in said, said)
    own = "put=0.01,get=0.001,month=0.5,egress=0.09"
    equal(world.vsl("config", "one", "object-prices", own).text.strip(), own, "prices that were set")
    kill(device)
    world.servers.revive(device)
    equal(prices(), own, "prices after a death of the service")
    check(figure(world, "one", "objects_stored_bytes") >= BLOCK, "nothing is in the store")


def silent(world: World, address: str, options: list[object], server: object, dice: random.Random) -> None:
    """A server that hangs: what is local is read and written as ever, and the store follows when it answers again."""
    device, held = made(world, "two", address, options)
    change(device, held, dice, 100)
    settle(world, "two")
    os.kill(server.pid, signal.SIGSTOP)
    change(device, held, dice, 100)
    compare(device, held)
    check(figure(world, "two", "objects_remote") < figure(world, "two", "objects_durable"), "a server that hangs took something")
    os.kill(server.pid, signal.SIGCONT)
    settle(world, "two")
    kill(device)
    world.servers.revive(device)
    compare(device, held)
    settle(world, "two")
    taken(world, device, held, address, options, dice)


def made(world: World, name: str, address: str, options: list[object]) -> tuple[Device, dict[int, bytes]]:
    """A new device on objects, attached."""
    journal = world.dir / f"{name}.vsl"
    world.vsl("create", journal, "--size", SIZE, "--objects", address, *options)
    again = world.vsl("create", world.dir / "again.vsl", "--size", SIZE, "--objects", address, *options, fails=True)
    check("a device in the store at this address already" in again.text, again.text)
    world.vsl("attach", journal, "--name", name)
    return Device(name, journal, SIZE, world.servers.uri(name)), {number: bytes(BLOCK) for number in range(BLOCKS)}


def change(device: Device, held: dict[int, bytes], dice: random.Random, count: int, flush: bool = True) -> None:
    """Writes and trims."""
    h = connect(device)
    for _ in range(count):
        number = dice.randrange(BLOCKS)
        held[number] = bytes(BLOCK) if dice.random() < 0.1 else dice.randbytes(BLOCK)
        if held[number] == bytes(BLOCK):
            h.trim(BLOCK, number * BLOCK)
        else:
            h.pwrite(held[number], number * BLOCK)
    if flush:
        h.flush()
    h.shutdown()


def compare(device: Device, held: dict[int, bytes]) -> None:
    """Everything is there."""
    h = connect(device)
    wrong = [number for number, block in held.items() if h.pread(BLOCK, number * BLOCK) != block]
    h.shutdown()
    equal(wrong, [], f"blocks of {device.name} that hold something else")


def figure(world: World, name: str, what: str) -> int:
    """A figure of a device."""
    return next(device[what] for device in world.servers.status()["devices"] if device["name"] == name)


def settle(world: World, name: str) -> None:
    """Waits until the store has everything."""

    def is_there() -> bool:
        return figure(world, name, "objects_remote") >= figure(world, name, "objects_durable")

    # In quiet times everything is made durable first.
    world.wait(is_there, "the store to have everything", seconds=60)
    mark = figure(world, name, "objects_durable")
    world.wait(lambda: is_there() and figure(world, name, "objects_durable") >= mark, "the store to have everything", seconds=60)


def taken(world: World, first: Device, held: dict[int, bytes], address: str, options: list[object], dice: random.Random) -> None:
    """A second host takes the device over; the first one is fenced; a third one gets it as its owner lets go."""
    second = host(world, f"{first.name}-b")
    journal = world.dir / f"{first.name}-b.vsl"
    attach = ["attach", journal, "--name", "b", "--objects", address, *options]
    refusal = run_as(world, second, *attach, fails=True)
    check("has the device" in refusal and "--take-over" in refusal, refusal)
    # To its own service it would do harm.
    own = world.vsl(*attach, "--take-over", fails=True).text
    check("is attached here already" in own and str(first.path) in own, own)
    compare(first, held)
    check(not journal.exists(), "a refused attach left a journal")
    run_as(world, second, *attach, "--take-over")
    other = Device("b", journal, SIZE, uri_of(world, second, "b"))
    compare(other, held)
    # The first one learns it with its next anchor, and then answers nothing any more.
    ours = dict(held)
    old = connect(first)
    old.pwrite(dice.randbytes(BLOCK), 0)
    world.wait(lambda: "fenced" in health(world, first.name), "the first host to be fenced")
    refused("a read of a fenced device", errno.EIO, lambda: old.pread(BLOCK, BLOCK))
    refused("a write of a fenced device", errno.EIO, lambda: old.pwrite(bytes(BLOCK), 0))
    world.wait(lambda: "fenced" in world.vsl("events", first.name).out, "an event that says that it is fenced")
    change(other, held, dice, 50)
    compare(other, held)
    check(held != ours, "nothing was changed")
    world.vsl("detach", first.name, "--force", fails=None)
    again = world.vsl("attach", first.path, "--name", first.name, fails=True)
    check("has the device" in again.text, again.text)
    # The owner lets go, so nobody has to take anything over.
    run_as(world, second, "detach", "b")
    third = host(world, f"{first.name}-c")
    run_as(world, third, "attach", world.dir / f"{first.name}-c.vsl", "--name", "c", "--objects", address, *options)
    last = Device("c", world.dir / f"{first.name}-c.vsl", SIZE, uri_of(world, third, "c"))
    compare(last, held)
    run_as(world, third, "detach", "c")
    said = json.loads(world.vsl("objects", address, *options, "--json").out)
    equal(said["missing"], [], "objects that the anchor names and that are not there")
    check(said["released"], "the store does not say that the device was released")
    for environment in (second, third):
        run_as(world, environment, "down")


def health(world: World, name: str) -> str:
    """How a device is, in words."""
    return next(device["health"] for device in world.servers.status()["devices"] if device["name"] == name)


def host(world: World, name: str, *options: object) -> list[str]:
    """Another host, as far as one machine can be: a service with directories of its own."""
    home = world.dir / name
    for part in ("run", "state"):
        (home / part).mkdir(parents=True, mode=0o700)
    stage = Path(os.environ["OPENVSL_STAGING_DIR"]) / name
    stage.mkdir(mode=0o700)
    environment = [f"OPENVSL_RUNTIME_DIR={home}/run", f"OPENVSL_STATE_DIR={home}/state", f"OPENVSL_STAGING_DIR={stage}"]
    run_as(world, environment, "up", *options)
    return environment


def run_as(world: World, environment: list[str], *arguments: object, fails: bool = False) -> str:
    """Runs our command as on that host."""
    return world.run("env", *environment, world.vsl_path, *arguments, fails=fails).text


def uri_of(world: World, environment: list[str], name: str) -> str:
    """The address of a device on that host."""
    done = world.run("env", *environment, world.vsl_path, "status", "--json")
    found = [device["uri"] for device in json.loads(done.out)["devices"] if device["name"] == name]
    check(found, f"that host's status does not list {name}")
    check(answers(Device(name, Path(), SIZE, found[0]).socket), "its socket does not answer")
    return found[0]
