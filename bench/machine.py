"""Where a measurement was made: what a reader needs to judge the figures."""

import datetime
import os
import platform
import subprocess
from pathlib import Path


def describe(directory: Path, vsl: Path) -> dict[str, str]:
    """The machine, its file system and the versions of everything measured."""
    return {
        "date": now(),
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "memory": f"{_memory_gib():.0f} GiB",
        "kernel": platform.release(),
        "file system": _said(["df", "--output=fstype,source", str(directory)]).splitlines()[-1],
        "vsl": f"{_said([str(vsl), '--version'])} ({_said(['git', 'describe', '--always', '--dirty'])})",
        "fio": _said(["fio", "--version"]),
        "nbdkit": _said(["nbdkit", "--version"]),
        "qemu-nbd": _said(["qemu-nbd", "--version"]).splitlines()[0],
    }


def now() -> str:
    """The moment, in UTC."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def processor() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _said(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent)
    return done.stdout.strip() or "unknown"
