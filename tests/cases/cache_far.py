"""Cached volumes before NBD servers of others and before an NVMe subsystem: fio verify; servers killed and back while clients go on, with what is dirty, what no flush covered, and what cannot be read meanwhile; a service that starts before its store; and what is refused."""

import json
import os
from subprocess import Popen

import nbd
from harness import MIB, World, check, equal
from harness.caches import create, shown, status, volume
from harness.fio import fio
from harness.libnbd import connect

OURS = True
SIZE = 64 * MIB


class Store:
    """A file behind nbdkit, which can be killed and started again."""

    def __init__(self, world: World, name: str, *options: str) -> None:
        self.world, self.options = world, options
        self.file, self.socket = world.dir / f"{name}.img", world.dir / f"{name}.sock"
        self.file.write_bytes(os.urandom(SIZE))
        self.process: Popen | None = None

    @property
    def uri(self) -> str:
        return f"nbd+unix:///?socket={self.socket}"

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        self.process = self.world.start("nbdkit", "-f", "-U", self.socket, *self.options, "file", self.file, log=f"{self.file.stem}.log")
        self.world.wait(self.socket.exists, "nbdkit to listen")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def run(world: World) -> None:
    world.servers.up()
    world.vsl("create", world.dir / "fast.vsl", "--size", 64 * MIB, "--address-space", "1PiB", "--yes")
    world.vsl("attach", world.dir / "fast.vsl", "--name", "fast")
    store = Store(world, "store")
    refusals(world, store)
    store.start()
    write_back(world, store)
    store.kill()
    through = Store(world, "through")
    through.start()
    unflushed(world, through)
    late(world, through)
    subsystem(world)


def refusals(world: World, store: Store) -> None:
    """What cannot be reached, or is no store, is told, and nothing has changed."""
    closed = Store(world, "closed", "-r")
    closed.start()
    for behind, words in (
        (store.uri, "see that the server runs"),
        (closed.uri, "read-only"),
        ("nbds://host/a", "TLS"),
        ("nbd://:10809", "expected nbd://HOST"),
        ("nvme+tcp://host/a", "names no port"),
        ("https://host/a", "scheme is neither"),
    ):
        said = world.vsl("cache", "create", "x", "--cache", "fast", "--behind", behind, fails=True).text
        check(words in said, said)
    closed.kill()
    equal(json.loads(world.vsl("--json", "cache", "list").out)["caches"], [], "volumes after refusals")


def write_back(world: World, store: Store) -> None:
    """What is dirty outlives the server, and goes behind once that is back; the volume serves all the while."""
    create(world, "back", store.uri, "write-back")
    device = volume(world, "back")
    equal(device.size, SIZE, "bytes of the volume")
    fio(world, device, "--rw=randwrite", "--bsrange=4k-60k", "--blockalign=4k", "--size=16M", "--iodepth=16", "--verify=crc32c",
        "--do_verify=1")
    world.vsl("cache", "flush", "back")
    handle = connect(device)
    warm = bytes(handle.pread(MIB, 0))
    handle.pwrite(b"\x31" * MIB, 40 * MIB)
    store.kill()
    handle.pwrite(b"\x32" * MIB, 42 * MIB)
    handle.flush()
    world.wait(lambda: status(world, "back")["state"] == "degraded", "the loss to be seen")
    check("is there again" in status(world, "back")["health"], str(status(world, "back")))
    equal(bytes(handle.pread(MIB, 0)), warm, "what is cached, without the store")
    equal(bytes(handle.pread(MIB, 42 * MIB)), b"\x32" * MIB, "what was written without the store")
    fails(lambda: handle.pread(4096, 60 * MIB))
    check(status(world, "back")["dirty_bytes"] >= MIB, "nothing is dirty")
    store.start()
    world.wait(lambda: status(world, "back")["state"] == "healthy", "the store to be taken back")
    check(handle.pread(4096, 60 * MIB) is not None, "a client that stayed connected reads nothing")
    handle.shutdown()
    world.vsl("cache", "flush", "back")
    with open(store.file, "rb") as file:
        for at, byte in ((40, b"\x31"), (42, b"\x32")):
            file.seek(at * MIB)
            equal(file.read(MIB), byte * MIB, f"what stands behind at {at} MiB")
    world.wait(lambda: not shown(world, "back").get("clients"), "the client to be gone")
    world.vsl("cache", "delete", "back", "--yes")


def unflushed(world: World, store: Store) -> None:
    """A server that went may have lost what no flush covered: the next flush says so, once."""
    create(world, "through", store.uri, "write-through")
    handle = connect(volume(world, "through"))
    handle.pwrite(b"\x41" * MIB, 0)
    handle.flush()
    handle.pwrite(b"\x42" * MIB, 0)
    store.kill()
    world.wait(lambda: status(world, "through")["state"] == "degraded", "the loss to be seen")
    fails(lambda: handle.pwrite(b"\x43" * MIB, 8 * MIB))
    store.start()
    world.wait(lambda: status(world, "through")["state"] == "healthy", "the store to be taken back")
    fails(handle.flush)
    handle.flush()
    check(bytes(handle.pread(MIB, 0)) == store.file.read_bytes()[:MIB], "the volume shows something else than what stands behind")
    handle.shutdown()
    world.wait(lambda: not shown(world, "through").get("clients"), "the client to be gone")


def late(world: World, store: Store) -> None:
    """A service that starts before its store opens the volume once that is there."""
    world.vsl("down", "--force")
    store.kill()
    world.servers.up()
    world.wait(lambda: status(world, "through")["health"] != "stopped", "the volume to be known")
    check("see that the server runs" in status(world, "through")["health"], str(status(world, "through")))
    store.start()
    world.wait(lambda: status(world, "through")["state"] == "healthy", "the volume to be opened")
    check(bytes(connect(volume(world, "through")).pread(MIB, 0)) == store.file.read_bytes()[:MIB], "it shows something else")


def subsystem(world: World) -> None:
    """A namespace, by its NVMe address."""
    world.device(SIZE, "slow")
    address = world.vsl("status", "slow", "--field", "nvme_uri").out.strip()
    create(world, "nvme", address, "write-through")
    device = volume(world, "nvme")
    fio(world, device, "--rw=randwrite", "--bsrange=4k-60k", "--blockalign=4k", "--size=16M", "--iodepth=16", "--verify=crc32c",
        "--do_verify=1")
    handle = connect(device)
    handle.pwrite(b"\x51" * MIB, 0)
    handle.trim(64 * 1024, 4096)
    handle.flush()
    equal(bytes(connect(volume(world, "slow")).pread(MIB, 0)), b"\x51" * 4096 + bytes(64 * 1024) + b"\x51" * (MIB - 68 * 1024), "what the namespace has")


def fails(request) -> None:
    try:
        request()
    except nbd.Error as error:
        check(error.errnum is not None, str(error))
        return
    raise AssertionError("a request that needs what stands behind was answered without it")
