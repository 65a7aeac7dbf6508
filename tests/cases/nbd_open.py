"""NBD beyond loopback is refused unless clients show certificates or --nbd-open says that everybody may; TLS without an authority warns."""

import shutil
import socket
import subprocess
from pathlib import Path

from harness import MIB, World, check, equal
from harness.certificates import make
from harness.libnbd import connect

OURS = True
# Every address of this machine: what is refused never listens, and what listens is asked from loopback only.
EVERYWHERE = "0.0.0.0"


def run(world: World) -> None:
    pki = make(world)
    half = world.dir / "half"
    half.mkdir()
    for name in ["server-cert.pem", "server-key.pem"]:
        shutil.copy(pki / name, half)
    path = world.dir / "disk.vsl"
    world.vsl("create", path, "--size", 64 * MIB, "--yes")
    require, offer = ["--tls", "require", "--tls-certificates"], ["--tls", "on", "--tls-certificates"]
    for address in [f"{EVERYWHERE}:0", "[::]:0", "[::ffff:0.0.0.0]:0"]:
        for options in [[], [*require, half], [*offer, pki]]:
            for command in [["serve", path, "--listen", address], ["up", "--nbd-listen", address], ["up", "--foreground", "--nbd-listen", address]]:
                said = world.vsl(*command, *options, fails=True).text
                check("whoever reaches this address could read and write every device" in said, said)
                check("--nbd-open" in said and "ca-cert.pem" in said, said)
    inherited(world, path)

    # With the authority clients are known; on loopback nobody else is there.
    up = world.vsl("up", "--nbd-listen", f"{EVERYWHERE}:0", *require, pki)
    check("warning" not in up.text, up.text)
    world.vsl("down")
    up = world.vsl("up", "--nbd-listen", "127.0.0.1:0", *require, half)
    check("whoever can connect may read and write every device" in up.err, up.text)
    world.vsl("down")
    # Whoever says so may have it, and an unmodified client gets through.
    world.vsl("up", "--nbd-listen", f"{EVERYWHERE}:0", "--nbd-open")
    world.vsl("attach", path, "--name", "disk")
    [shown] = world.servers.status()["devices"]
    port = shown["tcp_uri"].rsplit(":", 1)[1].split("/")[0]
    equal(connect(f"nbd://127.0.0.1:{port}/disk").get_size(), 64 * MIB, "size for a stranger who may")


def inherited(world: World, path: Path) -> None:
    """A socket that a supervisor passed is no way around."""
    with socket.socket() as listener:
        listener.bind((EVERYWHERE, 0))
        listener.listen()
        shell = f"LISTEN_PID=$$ LISTEN_FDS=1 exec {world.vsl_path} serve {path} 3<&{listener.fileno()}"
        done = subprocess.run(["bash", "-c", shell], pass_fds=[listener.fileno()], capture_output=True, text=True, timeout=60)
        check(done.returncode != 0 and "--nbd-open" in done.stderr, f"{done.returncode}: {done.stderr}")
