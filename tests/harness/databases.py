"""MariaDB and PostgreSQL under power cuts: how each is started and checked, and clients whose commits a ledger outside knows."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import threading
from pathlib import Path

from harness.check import check, equal
from harness.world import World

ROWS = 4000
CLIENTS = 3
# Transactions of each client whose rows stay.
KEPT = 50


class Damaged(Exception):
    """The database is not what it should be."""


class Database:
    """A server of one kind, its client and its checker."""

    name = ""
    user = ""
    schema = ""

    def __init__(self, world: World, data: Path, twice: bool) -> None:
        self.world = world
        self.data = data
        # Whether it writes pages twice, one way or another.
        self.twice = twice
        self.server: subprocess.Popen | None = None
        world.dir.chmod(0o777)

    def prepare(self) -> None:
        """Makes the database, and ends its server in peace."""
        self.initialise()
        self.start()
        self.asked(self.schema)
        for first in range(0, ROWS, 1000):
            rows = ",".join(f"({n},0,repeat('{n:08x}',25))" for n in range(first, first + 1000))
            self.asked(f"INSERT INTO page VALUES {rows}")
        for client in range(CLIENTS):
            self.asked(f"INSERT INTO last VALUES ({client}, 0)")
        self.stop()

    def initialise(self) -> None:
        """Makes an empty directory of data."""
        raise NotImplementedError

    def command(self) -> list[object]:
        """The server's command line."""
        raise NotImplementedError

    def client(self) -> list[object]:
        """A client that reads statements, prints rows at once, and ends with the first error."""
        raise NotImplementedError

    def ready(self) -> list[object]:
        """A command that succeeds once the server has recovered."""
        raise NotImplementedError

    def checked(self) -> list[str]:
        """What the database's own checker finds."""
        raise NotImplementedError

    def start(self) -> None:
        """Starts it, which recovers it."""
        log = self.world.dir / f"{self.name}.log"
        said = log.stat().st_size if log.exists() else 0
        self.server = self.spawned(self.command(), log.name)
        began = self.server
        self.world.wait(lambda: began.poll() is not None or self.succeeds(self.ready()), f"{self.name} to recover", 120)
        if began.poll() is not None:
            self.server = None
            lines = log.read_bytes()[said:].decode(errors="replace").splitlines()
            why = [line for line in lines if ("[ERROR]" in line or "PANIC" in line or "FATAL" in line) and "starting up" not in line and "not yet accepting" not in line]
            raise Damaged(f"{self.name} does not start: {why[0] if why else f'exit {began.returncode}'}")

    def spawned(self, command: list[object], log: str) -> subprocess.Popen:
        """A program as the database's user."""
        with open(self.world.dir / log, "ab") as out:
            words = [str(word) for word in command]
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/", user=self.user, group=self.user, extra_groups=[])

    def succeeds(self, command: list[object]) -> bool:
        """Whether a command does."""
        words = [str(word) for word in command]
        return subprocess.run(words, capture_output=True, user=self.user, group=self.user, extra_groups=[], cwd="/").returncode == 0

    def asked(self, sql: str) -> str:
        """What a statement gives."""
        words = [str(word) for word in self.client()]
        done = subprocess.run(words, input=f"{sql};\n", capture_output=True, text=True, timeout=300, user=self.user, group=self.user, extra_groups=[], cwd="/")
        if done.returncode:
            raise Damaged(done.stderr.strip() or f"exit {done.returncode}")
        return done.stdout.strip()

    def numbers(self, sql: str) -> list[list[int]]:
        """Rows of numbers."""
        return [[int(float(field)) for field in line.replace("|", "\t").split("\t")] for line in self.asked(sql).splitlines()]

    def kill(self) -> None:
        """Its machine has lost its power."""
        if self.server is None:
            return
        children = Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children")
        pids = [self.server.pid, *(map(int, children.read_text().split()) if children.exists() else [])]
        for pid in pids:
            subprocess.run(["kill", "-9", str(pid)], capture_output=True)
        self.server.wait(60)
        self.world.wait(lambda: not any(runs(pid) for pid in pids), f"{self.name}'s processes to end")
        self.server = None

    def stop(self) -> None:
        """Ends it in peace."""
        if self.server is not None:
            self.server.send_signal(signal.SIGTERM if self.name == "mariadb" else signal.SIGINT)
            equal(self.server.wait(120), 0, f"{self.name}'s exit code")
            self.server = None


class MariaDb(Database):
    """Debian's, unchanged."""

    name = "mariadb"
    user = "mysql"
    # Of its checker.
    warnings = 0
    # Pages go to the disk soon, so that many are under way when the power goes.
    tuned = ["--innodb-buffer-pool-size=6M", "--innodb-log-file-size=4M", "--innodb-max-dirty-pages-pct=0", "--innodb-io-capacity=1000"]
    schema = (
        "CREATE DATABASE d; CREATE TABLE d.page(id INT PRIMARY KEY, v INT, pad VARCHAR(4000), KEY(pad(60))) ENGINE=InnoDB;"
        "CREATE TABLE d.log(client INT, n INT, pad VARCHAR(4000), PRIMARY KEY(client, n), KEY(pad(40))) ENGINE=InnoDB;"
        "CREATE TABLE d.last(client INT PRIMARY KEY, n INT) ENGINE=InnoDB; USE d"
    )

    def initialise(self) -> None:
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={self.data}", "--user=mysql", "--skip-test-db", "--auth-root-authentication-method=normal"]
        self.world.run(*install)

    @property
    def socket(self) -> Path:
        return self.world.dir / "mariadb.sock"

    def command(self) -> list[object]:
        self.socket.unlink(missing_ok=True)
        return [
            shutil.which("mariadbd", path="/usr/sbin:/usr/bin") or "mariadbd", "--no-defaults", "--skip-networking", "--skip-stack-trace",
            "--innodb-buffer-pool-load-at-startup=0", "--innodb-buffer-pool-dump-at-shutdown=0", *self.tuned,
            f"--innodb-doublewrite={'ON' if self.twice else 'OFF'}", f"--datadir={self.data}", f"--socket={self.socket}",
        ]  # fmt: skip

    def client(self) -> list[object]:
        # Before the schema is made there is no database to choose.
        chosen = ["-D", "d"] if self.has_schema() else []
        return ["mariadb", "--no-defaults", "-uroot", *self.reached(), "-N", "-B", "--unbuffered", *chosen]

    def has_schema(self) -> bool:
        """Whether its database is there."""
        return (self.data / "d").exists()

    def ready(self) -> list[object]:
        return ["mariadb-admin", "--no-defaults", "-uroot", *self.reached(), "--silent", "ping"]

    def reached(self) -> list[object]:
        """Options that tell a client where the server is."""
        return [f"--socket={self.socket}"]

    def checked(self) -> list[str]:
        lines = [line.split("\t") for line in self.asked("CHECK TABLE page, log, last EXTENDED").splitlines()]
        # A warning is about a deleted record that was never purged, which a rollback leaves behind on any disk, and no reader sees.
        self.warnings += sum(kind == "Warning" for _, _, kind, _ in lines)
        return ["\t".join(line) for line in lines if line[2] != "Warning" and line[2:] != ["status", "OK"]]

    def counted(self, name: str) -> int:
        """One of its counters."""
        return int(self.asked(f"SHOW GLOBAL STATUS LIKE '{name}'").split()[-1])


class Postgres(Database):
    """Debian's, with checksums of pages."""

    name = "postgres"
    user = "postgres"
    # A page is written soon after it has changed, and each change follows a checkpoint closely.
    tuned = {"shared_buffers": "1MB", "max_wal_size": "4MB", "min_wal_size": "2MB", "bgwriter_delay": "10ms", "autovacuum_naptime": "5s"}
    schema = (
        "CREATE TABLE page(id INT PRIMARY KEY, v INT, pad TEXT); CREATE INDEX ON page(pad);"
        "CREATE TABLE log(client INT, n INT, pad TEXT, PRIMARY KEY(client, n)); CREATE INDEX ON log(pad);"
        "CREATE TABLE last(client INT PRIMARY KEY, n INT); CREATE EXTENSION amcheck"
    )

    @property
    def programs(self) -> Path:
        return sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]

    def initialise(self) -> None:
        self.data.mkdir()
        shutil.chown(self.data, self.user, self.user)
        initdb = [self.programs / "initdb", "-D", self.data, "-U", "postgres", "--data-checksums", "--wal-segsize=1", "-N", "--no-locale", "-E", "UTF8"]
        equal(self.spawned(initdb, "initdb.log").wait(120), 0, "initdb's exit code")

    def command(self) -> list[object]:
        settings = {
            "listen_addresses": "", "unix_socket_directories": self.world.dir, "full_page_writes": "on" if self.twice else "off",
            "restart_after_crash": "off", "huge_pages": "off", **self.tuned,
        }  # fmt: skip
        return [self.programs / "postgres", "-D", self.data, *(f"--{name}={value}" for name, value in settings.items())]

    def client(self) -> list[object]:
        return [self.programs / "psql", "-qXAt", *self.reached(), "-U", "postgres", "-v", "ON_ERROR_STOP=1", "postgres"]

    def ready(self) -> list[object]:
        return [self.programs / "pg_isready", "-q", *self.reached(), "-d", "postgres"]

    def reached(self) -> list[object]:
        """Options that tell a client where the server is."""
        return ["-h", self.world.dir]

    def checked(self) -> list[str]:
        # It reads every page of tables and indexes, and each page's checksum is looked at when it is read.
        words = [self.programs / "pg_amcheck", *self.reached(), "-U", "postgres", "--heapallindexed", "--jobs=1", "postgres"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300)
        return [] if done.returncode == 0 else (done.stdout + done.stderr).splitlines()[:5]


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


class Load:
    """Clients that commit one transaction after the other, and the ledger of what the server acknowledged."""

    def __init__(self, database: Database, seed: int) -> None:
        self.database = database
        self.seed = seed
        self.acknowledged = [0] * CLIENTS
        self.commits = 0

    def run(self, seconds: float, cut: object) -> None:
        """Commits until the server fails; `cut` is called once the time is over."""
        first = threading.Event()
        threads = [threading.Thread(target=self.commit, args=(client, first)) for client in range(CLIENTS)]
        for thread in threads:
            thread.start()
        if not first.wait(seconds):
            cut()
            first.wait(5)
        # It ends by itself when a sync fails, or waits for a disk that does not come back.
        self.database.kill()
        for thread in threads:
            thread.join()

    def commit(self, client: int, failed: threading.Event) -> None:
        database, chance = self.database, random.Random(f"{self.seed} {client} {self.acknowledged[client]}")
        words = [str(word) for word in database.client()]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, user=database.user, group=database.user, extra_groups=[], cwd="/") as running:
            try:
                while True:
                    n = self.acknowledged[client] + 1
                    running.stdin.write(transaction(client, n, chance))
                    running.stdin.flush()
                    if running.stdout.readline().strip() != str(n):
                        break
                    self.acknowledged[client] = n
                    self.commits += 1
            except OSError:
                pass
            failed.set()
            running.kill()
            try:
                running.stdin.close()
            except OSError:
                pass

    def violations(self) -> list[str]:
        """Starts the server on what is left, and says what is wrong. What was in doubt is known afterwards."""
        database = self.database
        try:
            database.start()
            found = database.checked()
            for (client, last), acknowledged in zip(database.numbers("SELECT client, n FROM last ORDER BY client"), list(self.acknowledged), strict=True):
                if not acknowledged <= last <= acknowledged + 1:
                    found.append(f"client {client}: {acknowledged} was acknowledged, {last} is the last there")
                self.acknowledged[client] = last
            for client, count, low, high in database.numbers("SELECT client, count(*), min(n), max(n) FROM log GROUP BY client"):
                last = self.acknowledged[client]
                if (count, low, high) != (min(last, KEPT), max(1, last - KEPT + 1), last):
                    found.append(f"client {client}: {count} rows from {low} to {high}, the last transaction is {last}")
            rows = database.numbers("SELECT count(*), sum(v) FROM page")
            if rows != [[ROWS, 0]]:
                found.append(f"pages and their sum: {rows}")
        except (Damaged, ValueError) as error:
            return [str(error)]
        return found


def transaction(client: int, n: int, chance: random.Random) -> str:
    """A transfer between rows that no other client changes, a row of a log, and a number that is the last."""
    rows = [chance.randrange(ROWS // CLIENTS) * CLIENTS + client for _ in range(4)]
    pad = f"repeat('{chance.randrange(1 << 32):08x}', {chance.randrange(1, 100)})"
    updates = (f"UPDATE page SET v = v {change}, pad = {pad} WHERE id = {row};" for row, change in zip(rows, ["+ 1", "- 1", "+ 2", "- 2"]))
    return (
        f"BEGIN; {' '.join(updates)} INSERT INTO log VALUES ({client}, {n}, {pad}); DELETE FROM log WHERE client = {client} AND n <= {n - KEPT};"
        f"UPDATE last SET n = {n} WHERE client = {client}; COMMIT; SELECT {n};\n"
    )


def cuts(world: World, place: object, database: Database, rounds: int, seed: int, most: int = 800) -> tuple[int, list[str], int]:
    """Cuts the power so often under a database, or until there is damage; gives how often, the damage, and the commits acknowledged."""
    chance = random.Random(seed)
    database.prepare()
    place.settle()
    load = Load(database, seed)
    database.start()
    for number in range(1, rounds + 1):
        at = chance.randint(1, most)
        place.cut_at(at, chance.randrange(1 << 31))
        load.run(4, place.cut_now)
        said = place.power_on()
        wrong = load.violations()
        print(f"{database.name}, cut {number} at write {at}: {load.commits} commits acknowledged; {said}; {'; '.join(wrong) or 'all there'}", flush=True)
        if isinstance(database, MariaDb) and database.warnings:
            print(f"warnings of CHECK TABLE EXTENDED so far: {database.warnings}", flush=True)
        if wrong:
            database.kill()
            return number, wrong, load.commits
    check(load.commits > rounds, f"{load.commits} commits in {rounds} cuts: nothing was tried")
    if isinstance(database, MariaDb) and not database.twice:
        equal(database.counted("innodb_dblwr_pages_written"), 0, "pages written twice")
    database.stop()
    return rounds, [], load.commits
