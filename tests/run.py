#!/usr/bin/python3
"""Runs the whole-system tests: each file in cases/ drives a device with software that others wrote."""

import argparse
import ast
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from harness.cleanup import MARK, clean, leftovers
from harness.liar import FAULTS

HERE = Path(__file__).resolve().parent
DEFAULT_LIMIT = 120  # seconds
# A line of a case's log that begins so is a figure to be shown, also when the case passes.
FIGURE = "figure: "


@dataclass
class Case:
    """One file in cases/: its first line says what it shows; constants at its top say what it needs."""

    name: str
    purpose: str
    slow: bool  # SLOW: belongs to `make soak`
    root: bool  # ROOT: mounts or loop devices
    ours: bool  # OURS: about `vsl` itself, so no stand-in will do
    limit: float  # LIMIT, seconds


def read_case(path: Path) -> Case:
    """Reads what a case says of itself, without running it."""
    tree = ast.parse(path.read_text())
    constants = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant):
            constants[node.targets[0].id] = node.value.value
    purpose = (ast.get_docstring(tree) or "").partition("\n")[0]
    if not purpose:
        raise SystemExit(f"{path}: its first line must say what it shows")
    get = constants.get
    return Case(path.stem, purpose, get("SLOW", False), get("ROOT", False), get("OURS", False), get("LIMIT", DEFAULT_LIMIT))


class Running:
    """The cases that run now: they end with the run itself."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.processes: set[subprocess.Popen[bytes]] = set()
        self.ended = False

    def start(self, command: list[str], **how: object) -> "subprocess.Popen[bytes]":
        """Starts one, in a session of its own."""
        with self.lock:
            if self.ended:
                raise KeyboardInterrupt
            process = subprocess.Popen(command, start_new_session=True, **how)
            self.processes.add(process)
        return process

    def over(self, process: "subprocess.Popen[bytes]") -> None:
        """One is over, or is now."""
        with self.lock:
            self.processes.discard(process)
            kill(process)
        process.wait()

    def end(self) -> None:
        """Nothing is to go on."""
        with self.lock:
            self.ended = True
            for process in self.processes:
                kill(process)


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Ends a process that leads a group, and the group with it, unless it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def run_case(case: Case, options: argparse.Namespace, running: Running) -> tuple[bool, str]:
    """Runs one case in a fresh directory: whether it passed, and its line; on failure also what it said, and the directory stays."""
    # Unix socket paths hold 107 bytes: a deep TMPDIR would leave no room.
    parent = tempfile.gettempdir() if len(tempfile.gettempdir()) < 40 else "/tmp"
    directory = Path(tempfile.mkdtemp(prefix="vsl-test.", dir=parent))
    # Memory, as the directory of a service is: what a killed one leaves there goes with the case.
    memory = Path(tempfile.mkdtemp(prefix="vsl-test.", dir="/dev/shm"))
    environment = os.environ | {
        MARK: str(directory),
        "OPENVSL_STAGING_DIR": str(memory),
        "OPENVSL_RUNTIME_DIR": str(directory / "run"),
        "OPENVSL_STATE_DIR": str(directory / "state"),
        "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C.UTF-8",
    }
    command = [sys.executable, "-m", "harness", case.name, options.vsl, options.server, options.tools]
    began = time.monotonic()
    with open(directory / "log", "wb") as log:
        process = running.start(command, cwd=HERE, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            passed = process.wait(timeout=case.limit) == 0
        except subprocess.TimeoutExpired:
            log.write(f"FAILED: not done after {case.limit} s\n".encode())
            passed = False
        finally:
            running.over(process)
            clean(directory)
            shutil.rmtree(memory, ignore_errors=True)
    took = time.monotonic() - began
    said = []
    if left := leftovers(directory):
        passed = False
        said.append(f"processes survive their test: {left}")
    said.append(f"{'ok    ' if passed else 'FAILED'} {case.name:<24} {took:6.1f} s  {case.purpose}")
    if passed:
        figures = [line for line in (directory / "log").read_text(errors="replace").splitlines() if line.startswith(FIGURE)]
        said += [f"       {line.removeprefix(FIGURE)}" for line in figures]
    else:
        said += ends_of_logs(directory)
    if passed or options.discard_failed:
        shutil.rmtree(directory, ignore_errors=True)
    else:
        said.append(f"--- all of it stays in {directory}")
    return passed, "\n".join(said)


def ends_of_logs(directory: Path) -> list[str]:
    """The end of every log of a failed test."""
    said = []
    for log in [directory / "log", *sorted(directory.rglob("*.log"))]:
        lines = log.read_text(errors="replace").splitlines()
        said.append(f"--- {log} (last {min(len(lines), 60)} of {len(lines)} lines)")
        said += [f"    {line[:400]}" for line in lines[-60:]]
    return said


def run_all(cases: list[Case], options: argparse.Namespace) -> list[str]:
    """Runs cases, some at once, and prints what comes of each; gives the names of those that failed."""
    running = Running()
    failed = []
    # Those that may take longest first: the last ones then end together.
    cases = sorted(cases, key=lambda case: -case.limit)
    with ThreadPoolExecutor(options.jobs) as pool:
        under_way = {pool.submit(run_case, case, options, running): case for case in cases}
        try:
            for done in as_completed(under_way):
                passed, said = done.result()
                print(said, flush=True)
                if not passed:
                    failed.append(under_way[done].name)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            running.end()
            raise
    return failed


def what_is_missing(cases: list[Case]) -> str | None:
    """Why the cases that mount something cannot run here, if they cannot."""
    if not any(case.root for case in cases):
        return None
    if os.geteuid() != 0:
        return "not root"
    for device in ["/dev/fuse", "/dev/loop-control"]:
        if not Path(device).exists():
            return f"no {device}"
    return None


def refuse_io_uring() -> None:
    """Puts this process, and all that it starts, under a filter like those of container runtimes."""
    import seccomp  # Only this needs it.

    filtered = seccomp.SyscallFilter(seccomp.ALLOW)
    for call in ["io_uring_setup", "io_uring_enter", "io_uring_register"]:
        filtered.add_rule(seccomp.ERRNO(errno.EPERM), call)
    filtered.load()


def main() -> int:
    """Runs what is asked for; exit status 0 if everything passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="names of cases (default: all)")
    parser.add_argument("--vsl", default="target/debug/vsl", help="the program to test")
    parser.add_argument("--slow", action="store_true", help="only the slow cases, instead of only the others")
    parser.add_argument("--without-root", action="store_true", help="leave out what mounts a file system")
    parser.add_argument("--tools", default="target/tools/bin", help="where `make soak` put its tools")
    parser.add_argument(
        "--server", choices=["vsl", "nbdkit", "qemu", *FAULTS], default="vsl", help="a stand-in for vsl, to try the tests themselves"
    )
    parser.add_argument("--without-io-uring", action="store_true", help="a system call filter refuses io_uring, as in many containers")
    # One more than there are processors: a case waits nearly as often as it works.
    parser.add_argument("--jobs", type=int, default=min((os.cpu_count() or 1) + 1, 5), help="so many cases at once (default: %(default)s)")
    parser.add_argument("--discard-failed", action="store_true", help="keep nothing of failed cases but what is printed")
    options = parser.parse_args()
    options.vsl, options.tools = str(Path(options.vsl).resolve()), str(Path(options.tools).resolve())

    cases = [read_case(path) for path in sorted((HERE / "cases").glob("*.py"))]
    if options.cases:
        if unknown := set(options.cases) - {case.name for case in cases}:
            raise SystemExit(f"no such case: {', '.join(sorted(unknown))}; there are: {' '.join(c.name for c in cases)}")
        cases = [case for case in cases if case.name in options.cases]
    else:
        cases = [case for case in cases if case.slow == options.slow]
    if options.server != "vsl":
        cases = [case for case in cases if not case.ours]
    elif not os.access(options.vsl, os.X_OK):
        raise SystemExit(f"{options.vsl}: not there; `cargo build` makes it, or name another with --vsl")
    if options.without_root:
        print(f"left out, as asked: {' '.join(case.name for case in cases if case.root) or 'nothing'}")
        cases = [case for case in cases if not case.root]

    if options.without_io_uring:
        refuse_io_uring()
    # A test that did not run has shown nothing, so it counts as failed; --without-root leaves it out knowingly.
    missing = what_is_missing(cases)
    impossible = [case for case in cases if case.root and missing]
    for case in impossible:
        print(f"FAILED {case.name:<24}    0.0 s  cannot run here ({missing}): run as root, or leave it out with --without-root")
    failed = [case.name for case in impossible]
    failed += run_all([case for case in cases if case not in impossible], options)
    if failed:
        print(f"\nfailed: {' '.join(failed)}")
    print(f"\n{len(cases) - len(failed)} passed, {len(failed)} failed", flush=True)
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    # Imports of cases/ and harness/ must not litter the source tree.
    sys.dont_write_bytecode = True
    # A shell's background job ignores interrupts, and so would all that is started here: tests of Ctrl-C would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
