#!/usr/bin/python3
"""Tests the tests: runs cases against a server with a planted fault, which they must find, and without, where they must pass."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The fault, and the cases that must fail because of it.
KILLED_BY = {
    "lost": ["fio_verify", "crash"],
    "misplaced": ["fio_verify"],
    "rot": ["fio_mixed"],
    "no-trim": ["fio_trim", "qemu_io"],
    "torn": ["crash"],
    "volatile": ["crash"],
}


def passes(fault: str, case: str) -> bool:
    """Whether the case sees nothing wrong."""
    command = [sys.executable, HERE / "run.py", "--server", fault, "--discard-failed", case]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, error = process.communicate()
    except KeyboardInterrupt:
        # It was told as well, and takes down what its case started.
        process.wait()
        raise
    if "1 passed, 0 failed" in out:
        return True
    if "0 passed, 1 failed" in out and "FAILED: " in out:
        return False
    raise SystemExit(f"{case} against {fault} came to no verdict:\n{out}{error}")


def main() -> int:
    """Gives the exit status: 0 if every fault was found and nothing else was."""
    wrong = 0
    runs = [("honest", case, True) for case in sorted({case for cases in KILLED_BY.values() for case in cases})]
    runs += [(fault, case, False) for fault, cases in KILLED_BY.items() for case in cases]
    for fault, case, expected in runs:
        right = passes(fault, case) == expected
        wrong += not right
        found = "passes" if right == expected else "is found out"
        print(f"{'ok    ' if right else 'FAILED'} {fault:<10} {found} in {case}", flush=True)
    print(f"\nplanted faults: {len(runs) - wrong} as they must be, {wrong} not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
