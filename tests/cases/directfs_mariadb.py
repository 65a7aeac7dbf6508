"""MariaDB, unmodified, on vsl-directfs: it writes no page twice, and what it acknowledged is there and whole after kill -9 of the file system."""

import shutil
import subprocess
import time
from pathlib import Path
from typing import Callable

from cases.directfs import killed, mounted
from harness import GIB, World, check, equal

SLOW = True
ROOT = True
OURS = True
LIMIT = 600
ROUNDS = 10
# What MariaDB takes for a sign of flash by Fusion-io.
SIGN = Path("/dev/fcta")
OPTIONS = ["--no-defaults", "--user=mysql", "--skip-networking", "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=16M"]


def run(world: World) -> None:
    device, mount = world.dir / "files.vsl", world.dir / "mount"
    mount.mkdir()
    # MariaDB's user has to get at the mount.
    world.dir.chmod(0o755)
    world.vsl("create", device, "--size", GIB, "--address-space", "1PiB")
    was_there = SIGN.exists()
    SIGN.touch()
    try:
        commits = rounds(world, device, mount)
    finally:
        if not was_there:
            SIGN.unlink()
    print(f"figure: {ROUNDS} times kill -9, {commits} commits, none lost, no page written twice")


def rounds(world: World, device: Path, mount: Path) -> int:
    program = mounted(world, device, mount, "--make", 10000)
    data = mount / "data"
    world.run("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=mysql", "--skip-test-db", "--auth-root-authentication-method=normal")
    acknowledged = 0
    for number in range(ROUNDS):
        server, socket = started(world, data)
        if number == 0:
            asked(socket, "CREATE DATABASE d; CREATE TABLE d.t(n INT PRIMARY KEY, pad VARCHAR(3000), KEY(pad(40))) ENGINE=InnoDB")
        found = int(asked(socket, "SELECT coalesce(max(n), 0) FROM d.t"))
        check(acknowledged <= found <= acknowledged + 1, f"{acknowledged} commits were acknowledged, {found} are there")
        equal(int(asked(socket, "SELECT count(*) FROM d.t")), found, "rows")
        check(asked(socket, "CHECK TABLE d.t EXTENDED").endswith("OK"), "CHECK TABLE finds damage")
        acknowledged = inserted(socket, found, program.kill)
        # It ends by itself when a sync fails, or does not.
        server.kill()
        server.wait(60)
        killed(program, mount)
        program = mounted(world, device, mount)
    server, socket = started(world, data)
    found = int(asked(socket, "SELECT max(n) FROM d.t"))
    check(acknowledged <= found <= acknowledged + 1, f"{acknowledged} commits were acknowledged, {found} are there")
    equal(asked(socket, "SHOW GLOBAL STATUS LIKE 'innodb_dblwr_pages_written'").split()[-1], "0", "pages written twice")
    asked(socket, "SHUTDOWN")
    server.wait(60)
    world.run("fusermount3", "-u", mount)
    program.wait(60)
    return acknowledged


def started(world: World, data: Path) -> tuple[subprocess.Popen, Path]:
    socket = world.dir / "db.sock"
    world.dir.chmod(0o777)
    socket.unlink(missing_ok=True)
    server = world.start(shutil.which("mariadbd", path="/usr/sbin") or "mariadbd", *OPTIONS, f"--datadir={data}", f"--socket={socket}", log="mariadb.log")
    ping = ["mariadb-admin", "--no-defaults", "-uroot", f"--socket={socket}", "ping"]
    world.wait(lambda: subprocess.run(ping, capture_output=True).returncode == 0, "MariaDB", 60)
    return server, socket


def client(socket: Path) -> list[str]:
    return ["mariadb", "--no-defaults", "-uroot", f"--socket={socket}", "-N", "-B", "--unbuffered"]


def asked(socket: Path, sql: str) -> str:
    return subprocess.run([*client(socket), "-e", sql], capture_output=True, text=True, check=True, timeout=120).stdout.strip()


def inserted(socket: Path, last: int, then: Callable[[], None]) -> int:
    """Inserts rows, one a transaction, for some seconds until `then` has happened. Gives the last that the server acknowledged."""
    with subprocess.Popen(client(socket), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        end, happened = time.monotonic() + 3, False
        while True:
            if time.monotonic() > end and not happened:
                happened = True
                then()
            try:
                running.stdin.write(f"INSERT INTO d.t VALUES ({last + 1}, repeat(md5({last}), 90)); SELECT {last + 1};\n")
                running.stdin.flush()
            except BrokenPipeError:
                break
            line = running.stdout.readline()
            if not line:
                break
            last = int(line)
        try:
            running.stdin.close()
        except BrokenPipeError:
            pass
        running.wait(60)
    return last
