"""Three services and one store: a device goes from host to host by command, and a host that stands by takes one over whose service was killed."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import nbd

from cases.objects import BLOCK, SIZE, bucket, host, run_as
from harness import World, check, equal
from harness.libnbd import connect
from harness.servers import Device, kill
from harness.web import up

OURS = True
LIMIT = 240
# The shortest that there is.
LEASE = 2
BLOCKS = 40


@dataclass
class Stamped:
    """A device in which each block says with which write it was filled: what a take-over leaves must be all writes up to one, and none behind it."""

    device: Device
    written: int = 0

    def write(self, count: int) -> None:
        """So many more writes, all of them answered."""
        h = connect(self.device)
        for _ in range(count):
            self.written += 1
            h.pwrite(self.written.to_bytes(8, "little") * (BLOCK // 8), self.written % BLOCKS * BLOCK)
        h.shutdown()

    def check(self, device: Device, least: int) -> None:
        """All writes up to one are there, at least so many, and the device goes on from there."""
        h = connect(device)
        blocks = [h.pread(BLOCK, number * BLOCK) for number in range(BLOCKS)]
        h.shutdown()
        stamps = [int.from_bytes(block[:8], "little") for block in blocks]
        torn = [number for number, block in enumerate(blocks) if block != block[:8] * (BLOCK // 8)]
        equal(torn, [], "blocks that are torn")
        last = max(stamps)
        check(least <= last <= self.written, f"the last write there is {last}, of {self.written}, and {least} were in the store")
        newest = [max((n for n in range(1, last + 1) if n % BLOCKS == number), default=0) for number in range(BLOCKS)]
        equal(stamps, newest, f"the blocks as of write {last}")
        self.device, self.written = device, last


def run(world: World) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    world.servers.up()
    store = bucket(world)[0]
    world.vsl("down")
    web = up(world)
    two, three = (host(world, name, "--listen", "127.0.0.1:0") for name in ("two", "three"))
    for name, environment in (("two", two), ("three", three)):
        add(world, name, environment)
    options = ["--endpoint", store]
    address = {name: f"s3://bucket/fleet/{name}" for name in ("a", "b", "c")}
    try:
        fleet(world, web, two, three, address, options)
    finally:
        for environment in (two, three):
            world.run("env", *environment, world.vsl_path, "down", "--force", fails=None)


def fleet(world: World, web, two: list[str], three: list[str], address: dict[str, str], options: list[object]) -> None:
    """One device each; a goes by itself, b by an operator, c by a move."""
    made = {}
    for name, environment, lease in (("a", two, LEASE), ("b", three, 0), ("c", None, 0)):
        journal = world.dir / f"{name}.vsl"
        world.vsl("create", journal, "--size", SIZE, "--objects", address[name], *options, "--lease", lease)
        as_of(world, environment, "attach", journal, "--name", name)
        made[name] = Stamped(device_of(world, environment, name, journal))
        made[name].write(100)
    refused = world.vsl("create", world.dir / "x.vsl", "--size", SIZE, "--objects", "s3://bucket/x", *options, "--lease", 1, fails=True)
    check("2 to 3600 seconds" in refused.text, refused.text)
    wait_owner(web, "a", "two")
    wait_owner(web, "b", "three")
    equal(owner(web, "c"), "here", "the host that has c")

    # Somebody stands by for a, also when its service starts again.
    third = world.dir / "a-third.vsl"
    said = run_as(world, three, "attach", third, "--name", "a", "--objects", address["a"], *options, "--stand-by")
    check("stands by" in said, said)
    run_as(world, three, "down")
    run_as(world, three, "up", "--listen", "127.0.0.1:0")
    settle_there(world, two, "a")
    least = made["a"].written
    made["a"].write(30)
    equal(state(world, three, "a"), "stand-by", "the host that stands by")
    check(not third.exists(), "a host that stands by made a journal before its time")
    # The owner is alive and renews its lease: nobody takes the device from it.
    commits = owner_of_store(world, address["a"], options)
    world.wait(lambda: owner_of_store(world, address["a"], options)["written_ms"] >= commits["written_ms"] + 2000 * LEASE, "some leases", 30)
    equal(state(world, three, "a"), "stand-by", "the host that stands by, after some leases")
    kill(made["a"].device)
    world.wait(lambda: state(world, three, "a") == "attached", "the host that stands by to take the device", 60)
    made["a"].check(device_of(world, three, "a", third), least)
    check("taken-over" in run_as(world, three, "events", "a"), "no event says that it was taken over")
    made["a"].write(50)

    # The service that was killed comes back, and its device is not its own any more.
    run_as(world, two, "up", "--listen", "127.0.0.1:0")
    add(world, "two", two)
    add(world, "three", three)
    world.wait(lambda: state(world, two, "a") == "error", "the old owner to be refused", 30)
    wait_owner(web, "a", "three")

    # An owner that sleeps through its lease answers nothing when it wakes up.
    run_as(world, two, "detach", "a")
    run_as(world, two, "attach", world.dir / "a-second.vsl", "--name", "a", "--objects", address["a"], *options, "--stand-by")
    settle_there(world, three, "a")
    least = made["a"].written
    sleeper = made["a"].device
    pid = sleeper.server_pid()
    h = connect(sleeper)
    os.kill(pid, signal.SIGSTOP)
    world.wait(lambda: state(world, two, "a") == "attached", "the other host to take the device", 60)
    os.kill(pid, signal.SIGCONT)
    try:
        h.pwrite(bytes(BLOCK), 0)
        raise AssertionError("an owner whose lease was over answered a write")
    except nbd.Error:
        pass
    made["a"].check(device_of(world, two, "a", world.dir / "a-second.vsl"), least)

    # An operator takes b over; its old host is alive, and fenced.
    settle_there(world, three, "b")
    least = made["b"].written
    run_as(world, two, "attach", world.dir / "b-second.vsl", "--name", "b", "--objects", address["b"], *options, "--take-over")
    made["b"].check(device_of(world, two, "b", world.dir / "b-second.vsl"), least)
    wait_owner(web, "b", "two")

    # A move copies nothing and loses nothing. One that is refused leaves everything as it was.
    (taken := world.dir / "c-taken.vsl").write_bytes(b"x")
    said = world.vsl("hosts", "move", "c", "--to", "two", "--journal", taken, fails=True).text
    check("exists already" in said and "has attached it again" in said, said)
    made["c"].check(device_of(world, None, "c", world.dir / "c.vsl"), made["c"].written)
    made["c"].write(20)
    said = world.vsl("hosts", "move", "c", "--to", "two").text
    check("moved c from here to two" in said, said)
    made["c"].check(device_of(world, two, "c", Path()), made["c"].written)
    wait_owner(web, "c", "two")
    made["c"].write(20)
    world.vsl("hosts", "move", "c", "--from", "two", "--to", "here", "--journal", world.dir / "c-again.vsl")
    made["c"].check(device_of(world, None, "c", world.dir / "c-again.vsl"), made["c"].written)
    said = world.vsl("hosts").out
    check(all(any(line.startswith(name) and where in line for line in said.splitlines()) for name, where in (("a", "two"), ("b", "two"), ("c", "here"))), said)
    equal([one["state"] for one in web.get("/fleet/moves")], ["moved", "moved", "failed"], "the moves, the newest first")
    check(any(entry["path"] == "/fleet/moves/2" for entry in web.get("/audit")["entries"]), "the audit log lacks the move's end")
    # A device of which no watched host knows.
    world.vsl("detach", "c")

    def found() -> list[str]:
        """What is said of it."""
        return [line for line in world.vsl("hosts", "--store", "s3://bucket", *options).out.splitlines() if address["c"] in line]

    world.wait(lambda: ["released" in line for line in found()] == [True], "the device to be shown as released", 20)


def add(world: World, name: str, environment: list[str]) -> None:
    """Has this host's service watch another one."""
    addresses = json.loads(world.run("env", *environment, world.vsl_path, "up", "--json").out)["web"]
    run_as(world, environment, "account", "add", "console", "--role", "administrator", "--no-password", fails=None)
    key = world.dir / f"{name}.key"
    key.write_text(world.run("env", *environment, world.vsl_path, "account", "key", "console").out)
    world.vsl("hosts", "remove", name, fails=None)
    world.vsl("hosts", "add", name, addresses[0], "--key-file", key)


def as_of(world: World, environment: list[str] | None, *arguments: object) -> str:
    """Runs our command as on a host."""
    return world.vsl(*arguments).text if environment is None else run_as(world, environment, *arguments)


def shown(world: World, environment: list[str] | None, name: str) -> dict:
    """What a host says of a device; nothing where it has none of that name."""
    words = [world.vsl_path, "status", "--json"]
    done = world.run(*words, fails=None) if environment is None else world.run("env", *environment, *words, fails=None)
    return next((device for device in json.loads(done.out)["devices"] if device["name"] == name), {})


def state(world: World, environment: list[str] | None, name: str) -> str | None:
    """What a device is doing on a host."""
    return shown(world, environment, name).get("state")


def device_of(world: World, environment: list[str] | None, name: str, journal: Path) -> Device:
    """A device on a host."""
    return Device(name, journal, SIZE, shown(world, environment, name)["uri"])


def settle_there(world: World, environment: list[str], name: str) -> None:
    """Waits until the store has everything of a device that nobody writes to."""
    h = connect(device_of(world, environment, name, Path()))
    h.flush()
    h.shutdown()

    def is_there() -> bool:
        device = shown(world, environment, name)
        return device["objects_remote"] >= device["objects_durable"]

    world.wait(is_there, "the store to have everything", seconds=60)


def owner_of_store(world: World, address: str, options: list[object]) -> dict:
    """What the store says of a device."""
    return json.loads(world.vsl("objects", address, *options, "--json").out)


def owner(web, name: str) -> str | None:
    """Which host has a device, as far as this service knows."""
    devices = [one for one in web.get("/fleet") if one["name"] == name and one["role"] == "owner"]
    return devices[0]["host"] if len(devices) == 1 else None


def wait_owner(web, name: str, host: str) -> None:
    """Waits until it is known here that a host has a device."""
    web_world = owner(web, name)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        web_world = owner(web, name)
        if web_world == host:
            return
        time.sleep(0.1)
    raise AssertionError(f"{name} is with {web_world}, not with {host}: {web.get('/fleet')}")
