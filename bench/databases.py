#!/usr/bin/python3
"""MariaDB, PostgreSQL and SQLite with double writes on a plain file, with them on a device, and without them on a device; then power cuts.

Makes one page with charts. Everything lies on one disk, and the three places take turns. Needs root, for FUSE mounts of other users.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]
from disks import OnDevice, PlainFile  # noqa: E402
from harness.cleanup import MARK, clean  # noqa: E402
from harness.databases import CLIENTS, Database, MariaDb, Postgres, cuts  # noqa: E402
from harness.places import DirectFs, TearingDisk  # noqa: E402
from harness.world import World  # noqa: E402
from machine import now, processor  # noqa: E402

PLACES = ["plain file", "device, written twice", "device, written once"]
# What MariaDB takes for a sign of flash by Fusion-io.
SIGN = Path("/dev/fcta")


@dataclass
class Plan:
    """How much is done."""

    seconds: float
    rounds: int
    rows: int  # of MariaDB's table
    scale: int  # of pgbench
    cuts: int


PLANS = {"full": Plan(20, 3, 400_000, 10, 20), "short": Plan(8, 3, 150_000, 5, 4), "smoke": Plan(2, 1, 150_000, 1, 2)}


@dataclass
class Arm:
    """One database in one place: each list has a value a round."""

    place: str
    transactions_per_s: list[float] = field(default_factory=list)
    p99_s: list[float] = field(default_factory=list)
    bytes_per_transaction: list[float] = field(default_factory=list)
    # What else is worth telling, by name.
    more: dict[str, float] = field(default_factory=dict)

    def add(self, rate: float, p99: float, sent: float) -> None:
        """One round."""
        self.transactions_per_s.append(rate)
        self.p99_s.append(p99)
        self.bytes_per_transaction.append(sent)


class Measured:
    """A database in a place, made once and measured many times."""

    def __init__(self, world: World, place: str, database: Database, plan: Plan, disk: PlainFile | OnDevice) -> None:
        self.world, self.database, self.plan, self.arm = world, database, plan, Arm(place)
        self.disk = disk
        database.initialise()
        database.start()
        self.fill()
        database.stop()

    def fill(self) -> None:
        raise NotImplementedError

    def load(self) -> tuple[int, float]:
        """One round: transactions, and the 99th percentile of their times in seconds."""
        raise NotImplementedError

    def round(self) -> None:
        self.database.start()
        self.before()
        before = self.disk.sent()
        count, p99 = self.load()
        self.arm.add(count / self.plan.seconds, p99, (self.disk.sent() - before) / count)
        self.after(count)
        self.database.stop()

    def before(self) -> None:
        """What is done before a round is measured."""

    def after(self, count: int) -> None:
        """What is noted of a round."""


class Sysbench(Measured):
    """MariaDB with sysbench's oltp_write_only, four clients, a buffer pool that holds a part of the table."""

    def sysbench(self, *words: object) -> str:
        common = ["sysbench", "oltp_write_only", "--db-driver=mysql", f"--mysql-socket={self.database.socket}", "--mysql-user=root", "--mysql-db=d"]
        table = ["--tables=1", f"--table-size={self.plan.rows}", "--rand-type=uniform", "--db-ps-mode=disable"]
        return subprocess.run([*map(str, [*common, *table, *words])], check=True, capture_output=True, text=True).stdout

    def fill(self) -> None:
        self.database.asked("CREATE DATABASE d")
        self.sysbench("prepare")

    def load(self) -> tuple[int, float]:
        said = self.sysbench("--threads=4", f"--time={self.plan.seconds:g}", "--percentile=99", "--mysql-ignore-errors=1213,1205,1062", "run")
        lines = {line.split(":")[0].strip(): line.split(":")[1] for line in said.splitlines() if ":" in line}
        return int(lines["transactions"].split()[0]), float(lines["99th percentile"]) / 1000

    def before(self) -> None:
        self.pages = self.database.counted("innodb_pages_written")

    def after(self, count: int) -> None:
        self.arm.more["pages a transaction"] = (self.database.counted("innodb_pages_written") - self.pages) / count
        self.arm.more["pages written twice a transaction"] = self.database.counted("innodb_dblwr_pages_written") / count


class Pgbench(Measured):
    """PostgreSQL with pgbench -N, four clients, begun with a checkpoint."""

    def pgbench(self, *words: object) -> str:
        command = [self.database.programs / "pgbench", "-h", self.world.dir, "-U", "postgres", *words, "postgres"]
        done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, cwd=self.world.dir)
        return done.stdout

    def fill(self) -> None:
        self.pgbench("-i", "-q", "-s", self.plan.scale)

    def before(self) -> None:
        self.database.asked("CHECKPOINT")
        self.began = self.position()

    def position(self) -> int:
        return self.database.numbers("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")[0][0]

    def load(self) -> tuple[int, float]:
        for old in self.world.dir.glob("pgbench_log.*"):
            old.unlink()
        self.pgbench("-N", "-c", 4, "-j", 2, "-T", max(1, round(self.plan.seconds)), "-l")
        times = sorted(int(line.split()[2]) for log in self.world.dir.glob("pgbench_log.*") for line in log.read_text().splitlines())
        return len(times), times[len(times) * 99 // 100] / 1e6

    def after(self, count: int) -> None:
        self.arm.more["log bytes a transaction"] = (self.position() - self.began) / count


MARIADB = ["--innodb-buffer-pool-size=32M", "--innodb-log-file-size=96M"]
POSTGRES = {"shared_buffers": "32MB", "max_wal_size": "1GB"}


def server(world: World, kind: type[Database], data: Path, twice: bool) -> Database:
    """A database as one would run it, small enough for the machine."""
    # MariaDB finds out by itself that it need not write twice.
    database = kind(world, data, twice or kind is MariaDb)
    database.tuned = MARIADB if kind is MariaDb else POSTGRES
    return database


def sqlite(world: World, example: Path, plan: Plan) -> list[Arm]:
    """Small transactions of SQLite, each durable; on the device in the VFS."""
    ways = dict(zip(PLACES, [("file", "wal"), ("device", "wal"), ("device", "batch")], strict=True))
    arms = {place: Arm(place) for place in PLACES}
    for number in range(plan.rounds):
        for place in turned(PLACES, number):
            directory = world.dir / f"sqlite.{number}.{place.split()[-1]}"
            directory.mkdir()
            plain = PlainFile(world, directory.name, directory) if place == "plain file" else None
            environment = os.environ | ({"DISK_STAT": str(plain.stat)} if plain else {})
            done = subprocess.run([example, directory, str(plan.seconds), *ways[place], "1"], check=True, capture_output=True, text=True, env=environment)
            said = json.loads(done.stdout)
            if plain:
                plain.close()
            arms[place].add(said["transactions_per_s"], said["p99_us"] / 1e6, said["bytes_per_transaction"])
            shutil.rmtree(directory)
    return list(arms.values())


def turned(names: list[str], number: int) -> list[str]:
    """Another one begins in each round."""
    at = number % len(names)
    return names[at:] + names[:at]


def served(world: World, kind: type[Database], measured: type[Measured], plan: Plan) -> list[Arm]:
    """A server in the three places, in turn."""
    found: dict[str, Measured] = {}
    for number, place in enumerate(PLACES):
        name = f"{kind.name}.{number}"
        home = world.dir / name
        home.mkdir()
        silent = ["--silent"] if place == "device, written twice" else []
        disk = PlainFile(world, name, home) if place == "plain file" else OnDevice(world, name, home, *silent)
        home.chmod(0o777)
        found[place] = measured(world, place, server(world, kind, home / "data", place != "device, written once"), plan, disk)
    for number in range(plan.rounds):
        for place in turned(PLACES, number):
            found[place].round()
            print(f"{kind.name}, {place}: {found[place].arm.transactions_per_s[-1]:,.0f} transactions/s", flush=True)
    for one in found.values():
        one.disk.close()
    return [found[place].arm for place in PLACES]


def power_cuts(world: World, plan: Plan, seed: int) -> list[dict]:
    """Power cuts under both servers without double writes; and the control, which must fail."""
    rows = []
    for kind in (MariaDb, Postgres):
        place = DirectFs(world, f"cuts-{kind.name}")
        tried, wrong, commits = cuts(world, place, kind(world, place.path / "data", False), plan.cuts, seed)
        place.unmount()
        rows.append({"database": kind.name, "place": "device, written once", "cuts": tried, "commits": commits, "damage": wrong, "must_fail": False})
        for twice in (True, False):
            disk = TearingDisk(world, f"torn-{kind.name}-{twice}".lower())
            tried, wrong, commits = cuts(world, disk, kind(world, disk.path / "data", twice), plan.cuts if twice else 200, seed)
            disk.unmount()
            what = "a disk that tears writes, written " + ("twice" if twice else "once: the control")
            rows.append({"database": kind.name, "place": what, "cuts": tried, "commits": commits, "damage": wrong, "must_fail": not twice})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vsl", type=Path, required=True, help="the program; vsl-directfs and faultfs are looked for beside it")
    parser.add_argument("--out", type=Path, default=Path("target/databases"), help="where the page and its figures go")
    parser.add_argument("--plan", choices=PLANS, default="full")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="of the power cuts")
    parser.add_argument("--no-cuts", action="store_true", help="leave the power cuts out")
    parser.add_argument("--page-only", action="store_true", help="draw the page again from the figures of the last run")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    figures = options.out / "databases.json"
    examples = options.vsl.resolve().parent / "examples"
    if not options.page_only:
        measured(options, examples, lambda found: figures.write_text(json.dumps(found, indent=1)))
    page = options.out / "databases.html"
    subprocess.run([examples / "databases_page", figures, page], check=True)
    print(page)
    rows = json.loads(figures.read_text())["cuts"]
    return 0 if all(bool(row["damage"]) == row["must_fail"] for row in rows) else 1


def measured(options: argparse.Namespace, examples: Path, keep: Callable[[dict], object]) -> None:
    """All figures; those of the speed are kept before the power is cut for the first time."""
    plan = PLANS[options.plan]
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    parent = examples.parent.parent
    directory = Path(tempfile.mkdtemp(prefix="vsl-bench.", dir=parent))
    memory = Path(tempfile.mkdtemp(prefix="vsl-bench.", dir="/dev/shm"))
    os.environ["OPENVSL_STAGING_DIR"] = str(memory)
    os.environ |= {MARK: str(directory), "OPENVSL_RUNTIME_DIR": str(directory / "run"), "OPENVSL_STATE_DIR": str(directory / "state")}
    world = World(directory, options.vsl.resolve(), "vsl", Path())
    was_there = SIGN.exists()
    SIGN.touch()
    try:
        databases = [
            {"name": "MariaDB", "load": "sysbench oltp_write_only, 4 clients, 32 MiB buffer pool", "arms": served(world, MariaDb, Sysbench, plan)},
            {"name": "PostgreSQL", "load": "pgbench -N, 4 clients, after a checkpoint", "arms": served(world, Postgres, Pgbench, plan)},
            {"name": "SQLite", "load": "one row a transaction, synchronous = FULL", "arms": sqlite(world, examples / "sqlite_speed", plan)},
        ]
        for database in databases:
            database["arms"] = [asdict(arm) for arm in database["arms"]]
        facts = {
            "Date": now(), "Processor": f"{processor()}, {os.cpu_count()} cores", "Versions": versions(),
            "Plan": f"{options.plan}: {plan.rounds} rounds of {plan.seconds:g} s, medians",
            "Power cuts": f"seed {options.seed}, {CLIENTS} clients",
        }  # fmt: skip
        keep({"facts": facts, "databases": databases, "cuts": []})
        if not options.no_cuts:
            keep({"facts": facts, "databases": databases, "cuts": power_cuts(world, plan, options.seed)})
    finally:
        if not was_there:
            SIGN.unlink()
        clean(directory)
        shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(memory, ignore_errors=True)


def versions() -> str:
    """What was measured."""
    said = [subprocess.run(words, capture_output=True, text=True).stdout.strip() for words in (["mariadbd", "--version"], ["postgres", "--version"])]
    return "; ".join(said)


if __name__ == "__main__":
    sys.exit(main())
