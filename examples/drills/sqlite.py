#!/usr/bin/python3
"""Cuts the power under SQLite, again and again, and checks after each cut that nothing it committed is lost.

SQLite runs on ext4 on a drill device. While a process commits transactions, the power goes at a random write of the medium; then it is switched
on again, the file system is mounted, and the database opened. It must be whole, every transaction that was reported as committed
must be there, and none may be there in part.

  sqlite.py --rounds 50                           # holds: nothing is lost
  sqlite.py --synchronous OFF --expect-loss       # SQLite without fsync: the check fails at last
  sqlite.py --ignore-flushes --expect-loss        # a disk whose cache lies: the same

Exit status: 0 as expected, 1 not so, 2 it could not be tried.
"""

import argparse
import hashlib
import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from drilled import Drilled, Trouble, common_options, try_out  # noqa: E402

ROWS = 3
# So long transactions are committed at most until the power goes by itself; without flushes it hardly ever does.
LONGEST = 60  # seconds
LONGEST_WITHOUT_FLUSHES = 3  # seconds


def payload(number: int, row: int) -> bytes:
    """What a row of a transaction holds: up to some pages, and known beforehand."""
    block = hashlib.sha256(f"{number}/{row}".encode()).digest()
    return block * (1 + number * (row + 7) % 97)


def open_database(path: Path, synchronous: str, journal: str) -> sqlite3.Connection:
    """Opens the database, made if it is not there yet."""
    database = sqlite3.connect(path, isolation_level=None, timeout=30)
    database.execute(f"PRAGMA journal_mode={journal}")
    database.execute(f"PRAGMA synchronous={synchronous}")
    database.execute("CREATE TABLE IF NOT EXISTS rows (number INTEGER, row INTEGER, payload BLOB, PRIMARY KEY (number, row))")
    database.execute("CREATE TABLE IF NOT EXISTS last (id INTEGER PRIMARY KEY CHECK (id = 0), number INTEGER)")
    database.execute("INSERT OR IGNORE INTO last VALUES (0, 0)")
    return database


def work(path: Path, synchronous: str, journal: str) -> None:
    """The process under test: commits transactions until its disk fails, and reports each that is committed."""
    try:
        database = open_database(path, synchronous, journal)
        (number,) = database.execute("SELECT number FROM last").fetchone()
        while True:
            number += 1
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT INTO rows VALUES (?, ?, ?)", [(number, row, payload(number, row)) for row in range(ROWS)])
            database.execute("UPDATE last SET number = ?", (number,))
            # Old ones go, so that space is used again and again.
            database.execute("DELETE FROM rows WHERE number <= ?", (number - 200,))
            database.execute("COMMIT")
            print(number, flush=True)
    except (sqlite3.Error, OSError) as error:
        print(f"ended: {error}", file=sys.stderr)


def violations(path: Path, committed: int, synchronous: str, journal: str) -> tuple[int, list[str]]:
    """The last transaction there, and what is wrong with the database, of which those up to a number were reported as committed."""
    try:
        database = open_database(path, synchronous, journal)
        found = [f"integrity_check: {line}" for (line,) in database.execute("PRAGMA integrity_check") if line != "ok"]
        (last,) = database.execute("SELECT number FROM last").fetchone()
        rows = database.execute("SELECT number, row, payload FROM rows ORDER BY number, row").fetchall()
        database.close()
    except sqlite3.Error as error:
        return 0, [f"it cannot be read: {error}"]
    if last < committed:
        found.append(f"transaction {committed} was committed, the last one there is {last}")
    if last > committed + 1:
        found.append(f"transaction {last} is there, {committed} was the last that was begun but one")
    expected = [(number, row, payload(number, row)) for number in range(max(1, last - 199), last + 1) for row in range(ROWS)]
    if rows != expected:
        found.append(f"{len(rows)} rows, {len(expected)} expected; first difference: {difference(rows, expected)}")
    return last, found


def difference(rows: list, expected: list) -> str:
    """Where two lists of rows part."""
    for row, wanted in zip(rows, expected):
        if row != wanted:
            return f"transaction {row[0]} row {row[1]}, expected {wanted[0]} row {wanted[1]}"
    return f"behind row {min(len(rows), len(expected))}"


def one_round(drilled: Drilled, options: argparse.Namespace, at: int, seed: int, committed: int) -> tuple[int, str, bool]:
    """Commits until the power goes, and looks at what is there afterwards. Gives the last transaction there, a line about it, and whether anything is wrong."""
    path = drilled.mount / "database"
    if options.ignore_flushes:
        drilled.vsl("drill", "db", "ignore-flushes")
    drilled.cut_at(at, seed, options.unsynced)
    # In processes of their own: what SQLite keeps open of a broken database would keep its file system busy.
    words = [sys.executable, __file__, "--synchronous", options.synchronous, "--journal", options.journal]
    longest = LONGEST if options.synchronous in ("FULL", "EXTRA") else LONGEST_WITHOUT_FLUSHES
    try:
        output = subprocess.run([*words, "--work", path], capture_output=True, text=True, timeout=longest).stdout
    except subprocess.TimeoutExpired as late:
        # Without flushes the file system may keep everything in memory: then the power goes now.
        output = (late.stdout or b"").decode()
    drilled.cut_now(seed, options.unsynced)
    numbers = [int(line) for line in output.splitlines() if line.isdigit()]
    committed = max(numbers, default=committed)
    cut = drilled.power_on()
    if options.ignore_flushes:
        drilled.vsl("drill", "db", "undo", "ignore-flushes")
    check = subprocess.run([*words, "--check", path, "--committed", str(committed)], stdout=subprocess.PIPE, timeout=LONGEST)
    if check.returncode:
        raise Trouble(f"the check of the database ended with status {check.returncode}: what it said stands above")
    last, wrong = json.loads(check.stdout)
    said = f"{committed} transactions committed; {cut}; {'; '.join(wrong) or 'all there'}"
    return last, said, bool(wrong)


def main() -> int:
    """Parses the command line and does it."""
    parser = common_options(__doc__, most=300)
    parser.add_argument("--synchronous", default="FULL", choices=["OFF", "NORMAL", "FULL", "EXTRA"], help="SQLite's PRAGMA")
    parser.add_argument("--journal", default="WAL", choices=["DELETE", "TRUNCATE", "PERSIST", "WAL"], help="SQLite's journal_mode")
    parser.add_argument("--ignore-flushes", action="store_true", help="the device's cache lies")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--check", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--committed", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.synchronous, options.journal)
        return 0
    if options.check:
        print(json.dumps(violations(options.check, options.committed, options.synchronous, options.journal)))
        return 0
    return try_out("SQLite", options, "256MiB", lambda drilled, chance: rounds(drilled, chance, options))


def rounds(drilled: Drilled, chance: random.Random, options: argparse.Namespace) -> Generator[bool, None, None]:
    """One after the other; yields whether anything is wrong."""
    committed = 0
    for number in range(1, options.rounds + 1):
        at = chance.randint(1, options.most)
        committed, said, wrong = one_round(drilled, options, at, chance.randrange(1 << 31), committed)
        print(f"cut {number} at write {at}: {said}", flush=True)
        yield wrong


if __name__ == "__main__":
    sys.exit(main())
