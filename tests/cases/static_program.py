"""The static program needs nothing of the system it runs on: README's minute works with it, and that of aarch64 serves a device under QEMU."""

from pathlib import Path

from harness import MIB, World, check
from harness.bare import NO_COMPILER, in_time, inside, minute

ROOT = True
OURS = True
SLOW = True
LIMIT = 600


def program(world: World, architecture: str) -> Path:
    """One that `make static` built."""
    path = world.tools.parent.parent / "static" / f"vsl-{architecture}"
    check(path.exists(), f"{path} is missing: packaging/build-static.sh {architecture} builds it")
    return path


def run(world: World) -> None:
    here = program(world, "x86_64")
    check("statically linked" in world.run("file", here).out or "static-pie linked" in world.run("file", here).out, "it is not static")
    said = inside(world, {"vsl-0.1.0-x86_64": here}, [
        NO_COMPILER,
        "cd /mnt && install -m 755 vsl-0.1.0-x86_64 /usr/local/bin/vsl",
        "PATH=/usr/local/bin:$PATH",
        # Nothing of the C library is used, names and certificates included.
        "vsl doctor",
        *minute(),
        "vsl down",
    ])
    in_time(said, "the static program")

    # The emulated processor's kernel has no io_uring, so this works on threads.
    elsewhere = ["qemu-aarch64-static", program(world, "aarch64")]
    image, socket = world.dir / "arm.vsl", world.dir / "arm.sock"
    world.run(*elsewhere, "create", image, "--size", 64 * MIB)
    served = world.start(*elsewhere, "serve", image, "--socket", socket, log="serve.log")
    world.wait(lambda: socket.exists() or served.poll() is not None, "the service to listen", 60)
    world.run(
        "fio", "--name=verify", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}", "--rw=randwrite", "--bs=4k", "--size=16m",
        "--iodepth=16", "--fsync=64", "--verify=crc32c", "--do_verify=1", timeout=300,
    )
    served.terminate()
    check(served.wait(60) == 0, f"its end: {served.returncode}")
    check("detached, healthy" in world.run(*elsewhere, "status", image).out, "its state when it was detached")
    # Bytes on media are the same on every machine.
    world.vsl("up")
    world.vsl("attach", image)
    check(world.vsl("status", "arm", "--field", "health").out.strip() == "healthy", "its health on another processor")
