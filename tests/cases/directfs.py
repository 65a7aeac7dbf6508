"""vsl-directfs: files survive kill -9 once they are synced, programs that ask learn of atomic writes, and SQLite loads the VFS."""

import errno
import fcntl
import os
import signal
import subprocess
from pathlib import Path

from harness import MIB, World, check, equal

ROOT = True
# _IOW(0x95, 2, uint), which MariaDB asks of each of its files.
ATOMIC_WRITES = 0x40049502


def run(world: World) -> None:
    device, mount = world.dir / "files.vsl", world.dir / "mount"
    mount.mkdir()
    world.vsl("create", device, "--size", 256 * MIB, "--address-space", "1TiB")
    program = mounted(world, device, mount, "--make", 1000)
    (mount / "d").mkdir()
    synced(mount / "d" / "kept", os.urandom(3 * MIB + 5))
    kept = (mount / "d" / "kept").read_bytes()
    os.symlink("kept", mount / "d" / "link")
    os.rename(mount / "d", mount / "e")
    with open(mount / "e" / "kept", "r+b") as file:
        equal(fcntl.ioctl(file, ATOMIC_WRITES, b"\1\0\0\0"), b"\1\0\0\0", "the answer to the ioctl")
        os.ftruncate(file.fileno(), 2 * MIB)
        os.unlink(mount / "e" / "kept")
        equal(os.pread(file.fileno(), 10, MIB), kept[MIB : MIB + 10], "a file that is open without a name")
    synced(mount / "e" / "other", kept)
    killed(program, mount)

    program = mounted(world, device, mount, "--silent")
    equal(sorted(os.listdir(mount / "e")), ["link", "other"], "names after kill -9")
    equal((mount / "e" / "other").read_bytes(), kept, "data after kill -9")
    with open(mount / "e" / "other") as file:
        try:
            fcntl.ioctl(file, ATOMIC_WRITES, b"\1\0\0\0")
            check(False, "--silent answers the ioctl")
        except OSError as error:
            equal(error.errno, errno.ENOTTY, "the error of the ioctl")
    world.run("cp", "-a", "/etc/alternatives", mount / "copy")
    world.run("diff", "-r", "--no-dereference", "/etc/alternatives", mount / "copy")
    world.run("fusermount3", "-u", mount)
    equal(program.wait(30), 0, "exit code after unmounting")
    extension(world)


def extension(world: World) -> None:
    """The distribution's SQLite, which knows no batches, on the VFS."""
    device = world.dir / "sqlite.vsl"
    world.vsl("create", device, "--size", 64 * MIB, "--address-space", "1TiB")
    library = world.vsl_path.parent / "libopenvsl_files"
    script = f".load {library}\n.open file:{device}/app.db?vfs=openvsl\n"
    world.run("sh", "-c", f"printf '{script}create table t(x);insert into t values(1),(2);' | sqlite3")
    out = world.run("sh", "-c", f"printf '{script}pragma integrity_check;select sum(x) from t;' | sqlite3").out
    equal(out.split(), ["ok", "3"], "what SQLite found")


def mounted(world: World, device: Path, mount: Path, *options: object) -> subprocess.Popen:
    program = world.start(world.vsl_path.parent / "vsl-directfs", device, mount, *options, log="directfs.log")
    world.wait(lambda: os.path.ismount(mount), "the mount")
    return program


def synced(path: Path, data: bytes) -> None:
    """Writes a file and its name durably."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def killed(program: subprocess.Popen, mount: Path) -> None:
    program.send_signal(signal.SIGKILL)
    program.wait(30)
    subprocess.run(["fusermount3", "-u", mount], check=True)
