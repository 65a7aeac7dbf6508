"""Takes away what a test leaves behind: mounts, loop devices and processes, and nothing of anyone else's."""

import os
import signal
import subprocess
import time
from pathlib import Path

# Every process of a test inherits this variable; its value, the test's directory, tells whose it is.
MARK = "OPENVSL_TEST_DIR"


def leftovers(directory: Path) -> list[int]:
    """Processes of the test that still run."""
    mark = f"{MARK}={directory}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue  # It ended meanwhile, or belongs to someone else.
    return found


def clean(directory: Path) -> None:
    """Unmounts, detaches and kills what belongs to the test of that directory."""
    for target in _mounts(directory, fuse=False):
        _try("umount", target)
    for loop in _loops(directory):
        _try("losetup", "-d", loop)
    for target in _mounts(directory, fuse=True):
        _try("umount", target)
    for sent in [signal.SIGTERM, signal.SIGKILL]:
        deadline = time.monotonic() + 5
        for pid in leftovers(directory):
            try:
                os.kill(pid, sent)
            except ProcessLookupError:
                continue
        while leftovers(directory) and time.monotonic() < deadline:
            time.sleep(0.05)
    # With its server dead nothing can hang any more; what a test made hang is let go of here.
    for target in _mounts(directory, fuse=False) + _mounts(directory, fuse=True):
        _try("umount", "--lazy", "--force", target)
    for loop in _loops(directory):
        _try("losetup", "-d", loop)


def _mounts(directory: Path, fuse: bool) -> list[str]:
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        target = fields[4].encode().decode("unicode_escape")
        is_fuse = fields[fields.index("-") + 1].startswith("fuse")
        if target.startswith(f"{directory}/") and is_fuse == fuse:
            found.append(target)
    return sorted(found, reverse=True)


def _loops(directory: Path) -> list[str]:
    found = []
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            if backing.read_text().startswith(f"{directory}/"):
                found.append(f"/dev/{backing.parent.parent.name}")
        except OSError:
            continue
    return found


def _try(*command: str) -> None:
    try:
        subprocess.run(command, timeout=30, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        print(f"cleanup: {' '.join(command)} hangs", flush=True)
