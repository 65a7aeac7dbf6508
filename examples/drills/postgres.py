#!/usr/bin/python3
"""Cuts the power under PostgreSQL, again and again, and checks after each cut that nothing it committed is lost.

A cluster lives on ext4 on a drill device. While a client commits transactions, the power goes at a random write of the medium; the server is killed,
since its machine has lost its disk; the power is switched on, the file system mounted, and the server started, which replays its log. Every transaction that
was reported as committed must be there, none in part, and pg_amcheck must find nothing.

  postgres.py --bin /usr/lib/postgresql/15/bin --rounds 10    # holds: nothing is lost
  postgres.py --fsync off --expect-loss                       # PostgreSQL without fsync: the check fails at last

Exit status: 0 as expected, 1 not so, 2 it could not be tried.
"""

import argparse
import os
import pwd
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from drilled import Drilled, Trouble, common_options, done, run, try_out, wait  # noqa: E402

ROWS = 3
# So long transactions are committed at most until the power goes by itself; without flushes it hardly ever does.
LONGEST = {"on": 60, "off": 5}  # seconds
SCHEMA = """
CREATE EXTENSION amcheck;
CREATE TABLE rows (number bigint, row int, payload text, PRIMARY KEY (number, row));
CREATE TABLE last (number bigint);
INSERT INTO last VALUES (0);
CHECKPOINT;
"""
COMMIT = """BEGIN; INSERT INTO rows SELECT {number}, row, repeat(md5('{number}/' || row), 1 + ({number} * (row + 7) % 40)::int) FROM generate_series(0, 2) row;
UPDATE last SET number = {number}; DELETE FROM rows WHERE number <= {number} - 200; COMMIT;
\\echo {number}
"""
WRONG = """SELECT count(*) FROM (
  (SELECT number, row, payload FROM rows) EXCEPT ALL
  (SELECT n, row, repeat(md5(n || '/' || row), 1 + (n * (row + 7) % 40)::int)
   FROM last, generate_series(greatest(1, last.number - 199), last.number) n, generate_series(0, 2) row)) AS more"""


class Server:
    """A PostgreSQL cluster on the drilled file system, and the user it runs as."""

    def __init__(self, programs: Path, drilled: Drilled, user: str, fsync: str) -> None:
        self.programs, self.drilled, self.fsync = programs, drilled, fsync
        try:
            self.user = pwd.getpwnam(user)
        except KeyError:
            raise Trouble(f"there is no user {user}: name one with --user") from None
        self.data = drilled.mount / "data"
        self.sockets = drilled.directory / "sockets"
        self.log = drilled.directory / "postgres.log"
        self.process: subprocess.Popen | None = None
        drilled.directory.chmod(0o755)
        for directory in [self.data, self.sockets]:
            directory.mkdir(mode=0o700)
            os.chown(directory, self.user.pw_uid, self.user.pw_gid)
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "drill", "--no-instructions", "-k")

    def options(self) -> dict:
        """As that user."""
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": [], "cwd": "/", "env": os.environ | {"HOME": "/"}}

    def run(self, program: str, *arguments: object) -> str:
        """Runs one of its programs, which must succeed."""
        words = [str(self.programs / program), *map(str, arguments)]
        result = subprocess.run(words, capture_output=True, text=True, timeout=120, **self.options())
        if result.returncode:
            raise Trouble(f"{program}: {result.stderr.strip()}")
        return result.stdout

    def start(self) -> None:
        """Starts it, and waits until it has recovered."""
        settings = {"fsync": self.fsync, "listen_addresses": "", "unix_socket_directories": self.sockets, "autovacuum": "off", "shared_buffers": "16MB", "max_wal_size": "64MB", "restart_after_crash": "off"}
        words = [str(self.programs / "postgres"), "-D", str(self.data), *(f"--{name}={value}" for name, value in settings.items())]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.options())
        ready = [self.programs / "pg_isready", "-q", "-h", self.sockets, "-d", "postgres"]
        wait(lambda: self.process.poll() is not None or done(*ready), "PostgreSQL to recover", 60)
        if self.process.poll() is not None:
            raise Damaged(f"it does not start: {self.log.read_text(errors='replace').splitlines()[-1]}")

    def kill(self) -> None:
        """Its machine has no disk any more: it is not to write anything into the next one."""
        if self.process:
            # Its children end with it; those that hang on the disk do once the disk is gone.
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
            pids = [self.process.pid, *map(int, children.read_text().split())] if children.exists() else [self.process.pid]
            for pid in pids:
                done("kill", "-9", pid)
            self.process.wait(timeout=30)
            wait(lambda: not any(alive(pid) for pid in pids), "PostgreSQL's processes to end")
            self.process = None

    def stop(self) -> None:
        """Ends it in peace."""
        if self.process:
            self.process.send_signal(2)
            self.process.wait(timeout=60)
            self.process = None

    def psql(self, text: str) -> str:
        """What a statement gives."""
        result = subprocess.run(self.client(), input=text, capture_output=True, text=True, timeout=60, **self.options())
        if result.returncode:
            raise Damaged(result.stderr.strip().splitlines()[0] if result.stderr.strip() else "psql failed")
        return result.stdout.strip()

    def client(self) -> list[str]:
        """A client that ends with the first error."""
        return [str(self.programs / "psql"), "-qXAt", "-h", str(self.sockets), "-U", "drill", "-v", "ON_ERROR_STOP=1", "postgres"]


class Damaged(Trouble):
    """The database is not what it should be."""


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


def commits(server: Server, first: int) -> int:
    """Commits transactions until the server fails, or for the longest time; gives the last that was reported as committed."""
    last = first - 1
    with subprocess.Popen(server.client(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **server.options()) as client:
        deadline = time.monotonic() + LONGEST[server.fsync]
        try:
            while time.monotonic() < deadline:
                client.stdin.write(COMMIT.format(number=last + 1))
                client.stdin.flush()
                line = client.stdout.readline()
                if line.strip() != str(last + 1):
                    break
                last += 1
        except OSError:
            pass
        client.kill()
    return last


def violations(server: Server, committed: int) -> list[str]:
    """What is wrong with the database, of which transactions up to this number were reported as committed."""
    try:
        server.start()
        last = int(server.psql("SELECT number FROM last"))
        rows = int(server.psql("SELECT count(*) FROM rows"))
        wrong = int(server.psql(WRONG))
        server.run("pg_amcheck", "-h", server.sockets, "-U", "drill", "--heapallindexed", "postgres")
    except (Trouble, ValueError) as error:
        return [str(error)]
    found = []
    if not committed <= last <= committed + 1:
        found.append(f"transaction {committed} was the last committed, {last} is the last there")
    if rows != ROWS * min(last, 200) or wrong:
        found.append(f"{rows} rows, {ROWS * min(last, 200)} expected, {wrong} of them wrong")
    return found


def main() -> int:
    """Parses the command line and does it."""
    parser = common_options(__doc__, most=400)
    parser.add_argument("--bin", type=Path, help="where PostgreSQL's programs are (default: where `postgres` of the path leads)")
    parser.add_argument("--user", default="postgres", help="whom PostgreSQL runs as: it refuses to be root (default: postgres)")
    parser.add_argument("--fsync", default="on", choices=["on", "off"], help="PostgreSQL's setting")
    options = parser.parse_args()
    programs = options.bin or (Path(shutil.which("postgres")).resolve().parent if shutil.which("postgres") else None)
    if not programs or not (programs / "initdb").exists():
        print("postgres.py: PostgreSQL's programs are not here: name their directory with --bin", file=sys.stderr)
        return 2
    return try_out("PostgreSQL", options, "512MiB", lambda drilled, chance: rounds(drilled, chance, programs, options))


def rounds(drilled: Drilled, chance: random.Random, programs: Path, options: argparse.Namespace) -> Generator[bool, None, None]:
    """One after the other; yields whether anything is wrong."""
    server = Server(programs, drilled, options.user, options.fsync)
    committed = 0
    try:
        server.start()
        server.psql(SCHEMA)
        run("sync", "-f", drilled.mount)
        for number in range(1, options.rounds + 1):
            at, cut_seed = chance.randint(1, options.most), chance.randrange(1 << 31)
            drilled.cut_at(at, cut_seed, options.unsynced)
            committed = commits(server, committed + 1)
            drilled.cut_now(cut_seed, options.unsynced)
            server.kill()
            cut = drilled.power_on()
            wrong = violations(server, committed)
            print(f"cut {number} at write {at}: {committed} transactions committed; {cut}; {'; '.join(wrong) or 'all there'}", flush=True)
            yield bool(wrong)
            committed = int(server.psql("SELECT number FROM last"))
        server.stop()
    finally:
        server.kill()


if __name__ == "__main__":
    sys.exit(main())
