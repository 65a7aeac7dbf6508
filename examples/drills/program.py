#!/usr/bin/python3
"""Cuts the power under a program of yours, again and again, and lets another program check what is left.

  program.py --work './commits "$DIR/database"' --check './check "$DIR/database" "$COMMITTED"'

The worker runs on ext4 on a drill device, in the directory DIR. It prints a line for everything that it promises to keep, and goes on
until its disk fails. After each cut the checker runs, with the last such line in COMMITTED (empty before the first): exit status 0 says
that everything promised is there. Both are commands of the shell. Where the power always went before the first line, up to ten rounds
more follow.

With --device there is no file system and nothing needs root: both get the NBD address of the device in URI, for programs that bring
their own client (libnbd, QEMU, fio).

Exit status: 0 as expected, 1 not so, 2 it could not be tried.
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from drilled import Drilled, Trouble, common_options, try_out  # noqa: E402

CHECK_SECONDS = 600
# So many rounds more while the worker promised nothing yet: the power may have gone before it could.
FURTHER_ROUNDS = 10


def work(command: str, environment: dict[str, str], longest: float) -> str:
    """Runs the worker until its disk fails, or for the longest time; gives the last line that it printed whole."""
    with subprocess.Popen(["sh", "-c", command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True) as worker:
        with contextlib.suppress(subprocess.TimeoutExpired):
            output, _ = worker.communicate(timeout=longest)
            return last_line(output)
        os.killpg(worker.pid, 9)
        output, _ = worker.communicate()
        return last_line(output)


def last_line(output: bytes) -> str:
    """What follows the last newline was not printed to its end, so nothing is promised by it."""
    lines = output.decode(errors="replace").split("\n")
    return lines[-2] if len(lines) > 1 else ""


def rounds(drilled: Drilled, chance: random.Random, options: argparse.Namespace) -> Generator[bool, None, None]:
    """One cut after the other; yields whether the checker found something wrong."""
    committed = ""
    for number in range(1, options.rounds + FURTHER_ROUNDS + 1):
        if number > options.rounds and committed:
            return
        where = {"URI": drilled.uri()} if options.device else {"DIR": str(drilled.mount)}
        at, seed = chance.randint(1, options.most), chance.randrange(1 << 31)
        drilled.cut_at(at, seed, options.unsynced)
        committed = work(options.work, os.environ | where, options.longest) or committed
        drilled.cut_now(seed, options.unsynced)
        cut = drilled.power_on()
        checked = subprocess.run(["sh", "-c", options.check], env=os.environ | where | {"COMMITTED": committed}, stdin=subprocess.DEVNULL, timeout=CHECK_SECONDS)
        if checked.returncode < 0:
            raise Trouble(f"the checker ended by signal {-checked.returncode}")
        said = "all there" if checked.returncode == 0 else f"the checker says {checked.returncode}"
        print(f"cut {number} at write {at}: committed: {committed or 'nothing'}; {cut}; {said}", flush=True)
        yield checked.returncode != 0
    if not committed:
        raise Trouble(f"the worker printed no line in {options.rounds + FURTHER_ROUNDS} rounds, so nothing was tried")


def main() -> int:
    """Parses the command line and does it."""
    parser = common_options(__doc__, most=300)
    parser.add_argument("--work", required=True, help="the program under test, a command of the shell")
    parser.add_argument("--check", required=True, help="what looks at what is left, a command of the shell")
    parser.add_argument("--size", default="256MiB", help="of the device (default: 256MiB)")
    parser.add_argument("--longest", type=float, default=60, help="seconds after which the power goes in any case (default: 60)")
    parser.add_argument("--device", action="store_true", help="no file system: both programs get the device's NBD address in URI")
    options = parser.parse_args()
    return try_out("the program", options, options.size, lambda drilled, chance: rounds(drilled, chance, options), mounted=not options.device)


if __name__ == "__main__":
    sys.exit(main())
