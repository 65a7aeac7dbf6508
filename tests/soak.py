#!/usr/bin/python3
"""Measures every figure that the project promises to reach, and writes them as one table: docs/soak.md.

Each line has ten minutes at most (`--minutes`). What was measured is kept until a commit changes the crates or tests that it is of, so
that a run which was interrupted goes on where it stopped; `--anew` begins from the beginning.
"""

import argparse
import datetime
import json
import os
import platform
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

# Imports from here must not litter the source tree.
sys.dont_write_bytecode = True
from run import Case, read_case  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PAGE = ROOT / "docs" / "soak.md"
PROCESSORS = os.cpu_count() or 1
SIM = str(TARGET / "release" / "vsl-sim")
FUZZ = str(TARGET / "debug" / "vsl-fuzz")
VSL = str(TARGET / "release" / "vsl")
TOOLS = str(TARGET / "tools" / "bin")
# Cases of a guest whose service is killed, and what it has its disk by.
GUESTS = {"nvme_guest_restart": "NVMe/TCP", "vhost_guest": "vhost-user-blk", "nbd_guest": "NBD by QEMU"}
# Slow cases that have a line of their own.
OTHERWISE = {"disconnects_many", "database_cuts_many", "database_guest", *(f"{name}_many" for name in GUESTS)}
# What cases run: the program, all else that packages hold, and the examples by which databases are measured.
BUILT_FOR_CASES = ["-p", "openvsl-cli", "-p", "openvsl-c", "-p", "openvsl-files", "-p", "faultfs", "--lib", "--bins",
                   "--example", "sqlite_speed", "--example", "databases_page"]
# What a command may take to clean up when its time is over.
CLEAN_UP = 60  # seconds


@dataclass
class Figure:
    """A number that the output of a command tells, in the first group of the pattern; several commands' numbers are put together."""

    what: str
    goal: str
    pattern: str
    least: float | None = None
    most: float | None = None
    together: str = "sum"
    # The share of it in a second figure of the same output must be at least this.
    share: tuple[str, float] | None = None

    def read(self, texts: list[str]) -> tuple[float | None, float | None]:
        """The number, and the share if there is one."""
        def number(pattern: str) -> float | None:
            found = [float(hit.replace(",", "")) for text in texts for hit in re.findall(pattern, text)]
            if not found:
                return None
            return sum(found) if self.together == "sum" else max(found)

        value = number(self.pattern)
        part = number(self.share[0]) if self.share else None
        return value, part / value if part is not None and value else None

    def is_reached(self, value: float | None, share: float | None) -> bool:
        """Whether that is what was promised."""
        if value is None or (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            return False
        return self.share is None or (share is not None and share >= self.share[1])


@dataclass
class Line:
    """What is run for some figures."""

    name: str
    command: list[str]
    figures: list[Figure]
    # The command is run over and over, several at once, until the first figure is reached: each time with another {seed}, and
    # with so many {seeds} from the {first} on that no other run had.
    chunk: int = 0
    environment: dict[str, str] = field(default_factory=dict)


def count(what: str, goal: str, pattern: str, least: float, **more: object) -> Figure:
    return Figure(what, goal, pattern, least=least, **more)


def lines() -> list[Line]:
    cargo_test = ["cargo", "test", "--locked", "--release", "-p", "openvsl-device"]
    simulator = [SIM, "--threads", "1", "--seeds", "{seeds}", "--seconds", "{seconds}"]
    cases = [sys.executable, "tests/run.py", "--vsl", VSL, "--tools", TOOLS]
    return [
        Line("cuts", [*simulator, "--from", "{first}"], [
            count("power cuts, 0 violations", "1,000,000, 10 % of them during recovery", r"(\d+) power cuts \(", 1e6,
                  share=(r"\((\d+) during recovery", 0.10)),
        ], chunk=1000),
        Line("batches", [*simulator, "--from", "3{first:07}", "--batches"], [
            count("power cuts on devices that are given batches, 0 violations", "1,000,000", r"(\d+) power cuts \(", 1e6),
        ], chunk=1000),
        Line("snapshots", [*simulator, "--from", "4{first:07}", "--snapshots"], [
            count("power cuts on devices with snapshots and clones, 0 violations", "1,000,000, 10 % of them during recovery", r"(\d+) power cuts \(", 1e6,
                  share=(r"power cuts \((\d+) during recovery", 0.10)),
        ], chunk=1000),
        Line("caches", [*simulator, "--from", "{first}", "--caches"], [
            count("power cuts of caches and what is behind, 0 violations", "1,000,000", r"(\d+) power cuts \(", 1e6),
        ], chunk=1000),
        Line("arrays", [*simulator, "--from", "{first}", "--arrays"], [
            count("power cuts of arrays, 0 violations", "1,000,000", r"(\d+) power cuts of all members", 1e6),
        ], chunk=1000),
        Line("array-snapshots", [*simulator, "--from", "6{first:07}", "--arrays", "--snapshots"], [
            count("power cuts of arrays with snapshots, 0 violations", "1,000,000", r"(\d+) power cuts of all members", 1e6),
        ], chunk=1000),
        Line("zones", [*simulator, "--from", "{first}", "--zones"], [
            count("power cuts of devices of zones, 0 violations", "1,000,000", r"(\d+) power cuts and", 1e6),
        ], chunk=1000),
        Line("objects", [*simulator, "--from", "{first}", "--objects"], [
            count("power cuts and take-overs of devices on objects, 0 violations", "1,000,000", r"(\d+) (?:power cuts|take-overs)", 1e6),
        ], chunk=1000),
        Line("leases", [*simulator, "--from", "5{first:07}", "--objects", "--leases"], [
            count("power cuts and take-overs of devices with a lease, 0 violations", "1,000,000", r"(\d+) (?:power cuts|take-overs)", 1e6),
        ], chunk=1000),
        Line("exhaustive", [SIM, "--exhaustive", "{longest}"], [
            count("crash states of the exhaustive scope, 100 % of them", "1,000,000", r"moments of a power cut, (\d+) states", 1e6),
        ]),
        Line("faults", [*cargo_test, "--test", "suite", "faults::"], [
            count("tests of the single-fault matrix: every page x 5 faults, with parity and without", "all", r"(\d+) passed", 5),
        ]),
        Line("die-loss", [*simulator, "--from", "{first}", "--die-loss"], [
            count("seeds of die loss at any time, 0 lost sectors", "100,000", r"^(\d+) seeds held", 1e5),
        ], chunk=2000),
        Line("kills", [*simulator, "--from", "2{first:07}", "--kills"], [
            count("deaths of the process, 0 answered writes or trims lost", "1,000,000", r"(\d+) kills of the process", 1e6,
                  share=(r"process \((\d+) during recovery", 0.10)),
        ], chunk=1000),
        Line("twice", [*simulator, "--from", "{first}", "--twice"], [
            count("seeds run twice with identical state hashes", "10,000", r"^(\d+) seeds held twice with identical", 1e4),
        ], chunk=500),
        Line("nonces", [*simulator, "--from", "1{first:07}", "--encrypted"], [
            count("power cuts on encrypted formats, 0 (key, nonce) pairs repeated", "1,000,000",
                  r"sealed over (\d+) power cuts, 0 \(key", 1e6),
        ], chunk=1000),
        Line("erases", [*cargo_test, "--test", "suite", "--", "--nocapture", "erase::an_erase_that_is_cut"], [
            count("erases cut midway, then 0 traces", "10,000", r"(\d+) erases cut midway", 1e4),
        ], chunk=1, environment={"OPENVSL_ERASES": "500", "OPENVSL_SEED": "{seed}", "TMPDIR": "/dev/shm"}),
        Line("disconnects", [*cases, "disconnects_many"], [
            count("times 10,000 clients hung up with 64 requests in flight, others in the handshake, a bystander unharmed", "1", r"(\d+) passed, 0 failed", 1),
        ]),
        Line("fuzz", [FUZZ, "all", "--executions", "200000", "--seed", "{seed}"], [
            count("hostile inputs, 0 aborts", "10,000,000", r"hostile input: (\d+) executions on \d+ targets, 0 aborts", 1e7),
            Figure("MiB by which memory grew at most", "under 64", r"memory grew by ([\d.]+) MiB", most=64, together="max"),
        ], chunk=1),
        *(Line(f"fuzz-{target}", [FUZZ, target, "--executions", executions, "--seed", "{seed}"], [
            count(f"hostile {units} to a server that runs, 0 aborts", "10,000,000", rf" 0 aborts, .* (\d+) {units}", 1e7),
            Figure("MiB by which memory grew at most", "under 64", r"memory grew by ([\d.]+) MiB", most=64, together="max"),
        ], chunk=1) for target, executions, units in [("nvme-session", "200000", "PDUs"), ("vhost", "30000", "descriptor chains")]),
        *(Line(f"fuzz-{target}", [FUZZ, target, "--executions", "20000", "--seed", "{seed}"], [
            count(f"calls of {what}, with crashes in the middle of changes, 0 violations", "10,000,000", r" 0 aborts, .*?(\d+) calls", 1e7),
        ], chunk=1) for target, what in [("kv", "a key-value store"), ("tree", "files on a device")]),
        Line("cuts-databases", [*cases, "database_cuts_many"], [
            count("power cuts under MariaDB and PostgreSQL without double writes, 0 corruptions, 0 lost commits, while both controls corrupt", "2,000",
                  r"(?:mariadb|postgres): (\d+) power cuts, \d+ commits acknowledged, none lost, no damage", 2e3),
        ], chunk=1, environment={"OPENVSL_CUTS": "40"}),
        Line("cuts-guest", [*cases, "database_guest"], [
            count("kills of a guest that runs MariaDB or PostgreSQL without double writes on blocks of 16 KiB, half with the device's power, 0 corruptions, "
                  "0 lost commits", "200", r"in a guest: (\d+) kills, \d+ commits acknowledged, none lost, no damage", 200),
        ], chunk=1, environment={"OPENVSL_CUTS": "10"}),
        Line("cuts-sqlite", ["cargo", "test", "--locked", "--release", "-p", "openvsl-files", "--test", "suite", "--", "--nocapture", "sqlite::no_commit_is_lost"], [
            count("power cuts under SQLite with transactions as batches, 0 corruptions, 0 lost commits", "1,000", r"(\d+) cuts in .*damaged: 0, lost: 0", 1e3),
        ], chunk=1, environment={"OPENVSL_CUTS": "500", "OPENVSL_SEED": "{seed}", "TMPDIR": "/dev/shm"}),
        Line("planted", [sys.executable, "tests/planted.py", "--markdown", str(TARGET / "planted.md")], [
            count("planted defects of the storage layer, each found within 60 s", "40, and all", r"planted defects: (\d+) of \1 found", 40),
        ]),
        Line("liars", [sys.executable, "tests/mutants.py"], [
            count("planted faults of a lying server, found by the whole-system tests", "all", r"planted faults: (\d+) as they must be, 0 not", 1),
        ]),
        Line("cuts-nvme", ["cargo", "test", "--locked", "--release", "-p", "openvsl-export", "--test", "suite", "--", "--nocapture", "nvme::cuts::no_power_cut_tears"], [
            count("power cuts by drill under writes of 1 MiB over NVMe, 0 torn", "10,000", r"writes of 1 MiB: (\d+), .*torn: 0 ", 1e4),
        ], chunk=1, environment={"OPENVSL_CUTS": "500", "OPENVSL_SEED": "{seed}", "TMPDIR": "/dev/shm"}),
        *(Line(name, [*cases, f"{name}_many"], [
            count(f"kill -9 under fio verify in a guest over {export}, in between restarts, upgrades and outages of 60 s, 0 I/O errors", "200",
                  r"(\d+) × kill -9.*; errors: 0", 200),
        ], chunk=1) for name, export in GUESTS.items()),
        *(Line(case.name, [*cases, case.name], [
            count(f"times the slow whole-system case held: {case.purpose.rstrip('.')}", "1", r"(\d+) passed, 0 failed", 1),
        ]) for case in slow_cases() if case.name not in OTHERWISE),
    ]


def slow_cases() -> list[Case]:
    """Those of the whole-system tests that are for a soak."""
    return [case for case in map(read_case, sorted((ROOT / "tests" / "cases").glob("*.py"))) if case.slow]


@dataclass
class Outcome:
    """What a line came to."""

    texts: list[str]
    seconds: float
    failed: str


class Runner:
    """Runs commands in process groups of their own, which end with their time."""

    def __init__(self, seconds: float, longest: int, jobs: int) -> None:
        self.seconds, self.longest, self.jobs = seconds, longest, jobs

    def once(self, line: Line, seed: int, left: float) -> tuple[str, str]:
        """One run: its output, and why it failed if it did."""
        words = {"seed": seed, "first": (seed - 1) * line.chunk + 1, "seeds": line.chunk, "seconds": int(max(left - 5, 1)), "longest": self.longest}
        command = [word.format(**words) for word in line.command]
        environment = os.environ | {name: value.format(**words) for name, value in line.environment.items()}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            out, _ = process.communicate(timeout=left + 30)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as stopped:
            out = self.stop(process)
            if isinstance(stopped, KeyboardInterrupt):
                raise
            return out.decode(errors="replace"), f"not done within {left + 30:.0f} s"
        text = out.decode(errors="replace")
        last = text.strip().splitlines()[-1] if text.strip() else "no output"
        return text, "" if process.returncode == 0 else f"exit status {process.returncode}: {last[:200]}"

    @staticmethod
    def stop(process: subprocess.Popen) -> bytes:
        """Ends a command whose time is over, first in the way in which it takes down what it started: daemons, mounts, loop devices."""
        os.killpg(process.pid, signal.SIGINT)
        try:
            out, _ = process.communicate(timeout=CLEAN_UP)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
        return out

    def run(self, line: Line, texts: list[str]) -> Outcome:
        """A line, in one go or in chunks, so many jobs at once; those that gave these texts are done."""
        began = time.monotonic()
        if not line.chunk:
            text, failed = self.once(line, 1, self.seconds)
            return Outcome([text], time.monotonic() - began, failed)
        failures: list[str] = []
        lock, seeds = threading.Lock(), iter(range(len(texts) + 1, 1 << 30))

        def work() -> None:
            while True:
                left = self.seconds - (time.monotonic() - began)
                with lock:
                    value, _ = line.figures[0].read(texts)
                    if left <= 0 or failures or (value or 0) >= (line.figures[0].least or 0):
                        return
                    seed = next(seeds)
                text, failed = self.once(line, seed, left)
                with lock:
                    # A chunk that its time ran out for shows nothing, and is no finding either.
                    if failed and not failed.startswith("not done"):
                        failures.append(failed)
                    texts.append(text)

        workers = [threading.Thread(target=work) for _ in range(self.jobs)]
        [worker.start() for worker in workers]
        [worker.join() for worker in workers]
        return Outcome(texts, time.monotonic() - began, failures[0] if failures else "")


def say(value: float | None, share: float | None) -> str:
    """A figure as people read it."""
    if value is None:
        return "none"
    text = f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
    return text if share is None else f"{text} ({100 * share:.0f} %)"


def machine() -> str:
    """What this ran on."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{PROCESSORS} processors ({model.group(1) if model else platform.machine()}), Linux {platform.release()}"


def rows_of_page(page: str) -> dict[str, dict]:
    """What a page says was measured: on another machine nothing else is left of it."""
    cells = [[cell.strip() for cell in text[2:-2].split(" | ")] for text in page.splitlines() if text.startswith("| ")]
    by_figure = {tuple(row[:2]): row[2:] for row in cells if len(row) == 8 and row[2] not in ("reached", "not measured")}
    measured = re.search(r"^Measured on (.*)\.$", page, re.MULTILINE)
    rows = {}
    for line in lines():
        found = [by_figure.get((figure.what, figure.goal)) for figure in line.figures]
        if not all(found):
            continue
        [_, verdict, minutes, date, commit, command] = found[0]
        longest = re.search(r"--exhaustive (\d+)", command)
        rows[line.name] = {"figures": [(reached, verdict == "yes") for reached, verdict, *_ in found], "seconds": 60 * float(minutes), "texts": [],
                           "failed": verdict.removeprefix("yes").removeprefix("**no**").strip(), "commit": commit, "date": date,
                           "machine": measured[1] if measured else "", "longest": int(longest[1]) if longest else 3}
    return rows


def write_page(rows: dict[str, dict]) -> None:
    """docs/soak.md, as far as it was measured."""
    out = [
        "# Soak", "",
        "Every figure that the project promises to reach, as `make soak` last measured it. This page is written by `tests/soak.py`.",
        "What the figures stand for is in [Guarantees](guarantees.md), how to run a part of it in [Testing](testing.md).", "",
        f"Measured on {' and on '.join(dict.fromkeys(row['machine'] for row in rows.values()))}.", "",
        "| figure | goal | reached | | minutes | date | commit | command |", "|---|---|---:|---|---:|---|---|---|",
    ]
    for line in lines():
        row = rows.get(line.name)
        command = " ".join(Path(word).name if word.startswith("/") else word for word in line.command)
        command = command.replace("{longest}", str(row.get("longest", 3) if row else 3))
        for number, figure in enumerate(line.figures):
            if row is None:
                out.append(f"| {figure.what} | {figure.goal} | not measured | | | | | `{command}` |")
                continue
            reached, held = row["figures"][number]
            verdict = "yes" if held else f"**no** {row['failed']}".strip()
            out.append(f"| {figure.what} | {figure.goal} | {reached} | {verdict} | {row['seconds'] / 60:.1f} | {row['date']} | "
                       f"{row['commit']} | `{command}` |")
    planted = TARGET / "planted.md"
    before = PAGE.read_text().partition("\n## Planted defects\n")[2]
    if "planted" in rows and not planted.exists() and before:
        out += ["", "## Planted defects", before.rstrip()]
    elif "planted" in rows and planted.exists():
        out += ["", "## Planted defects", "",
                "Each is a patch of `testkit/planted`, switched on by the variable `OPENVSL_MUTANT` in a copy of the tree. A suite is a seed of",
                "`vsl-sim`, its exhaustive scope, or a test of a crate: package, target, name.", "", planted.read_text().strip()]
    PAGE.write_text("\n".join(out) + "\n")


def prepare(wanted: list[Line]) -> None:
    """Builds what the lines run, so that no line's time goes into that."""
    def cargo(command: str, *words: str) -> tuple[str, ...]:
        return ("cargo", command, "--locked", *words)

    builds = {
        SIM: [cargo("build", "--release", "-p", "sim", "--bin", "vsl-sim")],
        FUZZ: [cargo("build", "-p", "fuzz", "--bin", "vsl-fuzz")],
        VSL: [cargo("build", "--release", *BUILT_FOR_CASES)],
        "tests/mutants.py": [cargo("build", "--bin", "vsl")],
        "cargo": [cargo("test", "--release", "-p", package, "--test", "suite", "--no-run") for package in ["openvsl-device", "openvsl-export", "openvsl-files"]],
        **dict.fromkeys(["image", "static_program"], [("packaging/build-static.sh", "x86_64", "aarch64")]),
    }
    words = {word for line in wanted for word in line.command}
    # What several lines need is built once.
    for command in dict.fromkeys(command for word, commands in builds.items() if word in words for command in commands):
        subprocess.run(command, cwd=ROOT, check=True)


class Commits:
    """What the lines measure, as the last commit that changed it: not one of texts, of which one is written here, or of other crates."""

    # The package whose program a command runs.
    PROGRAMS = {SIM: "sim", FUZZ: "fuzz", VSL: "openvsl-cli"}

    def __init__(self) -> None:
        listed = subprocess.run(["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
        packages = json.loads(listed.stdout)["packages"]
        self.folders = {package["name"]: str(Path(package["manifest_path"]).parent.relative_to(ROOT)) for package in packages}
        self.needs = {package["name"]: {needed["name"] for needed in package["dependencies"]} & self.folders.keys() for package in packages}

    def packages(self, line: Line) -> set[str]:
        """Those that a line runs, and all that they need."""
        words = line.command
        found = {name for program, name in self.PROGRAMS.items() if program in words}
        found |= {name for option, name in zip(words, words[1:]) if option == "-p"}
        # What plants defects builds everything.
        found = found or set(self.folders)
        while more := {needed for name in found for needed in self.needs[name]} - found:
            found |= more
        return found

    def commit(self, line: Line) -> str:
        """The last one that changed what a line measures, with a mark where that has changes that are not committed."""
        tests = ["tests", "testkit"] if any(word.startswith("tests/") for word in line.command) else []
        paths = [*sorted(self.folders[name] for name in self.packages(line)), *tests, "Cargo.lock", ":!*.md", ":!tests/soak.py"]
        changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *paths], cwd=ROOT).returncode != 0
        last = subprocess.run(["git", "log", "-1", "--format=%h", "--", *paths], cwd=ROOT, check=True, capture_output=True, text=True)
        return last.stdout.strip() + ("-dirty" if changed else "")


def main() -> int:
    """Gives the exit status: 0 if every figure that was measured is reached."""
    # Where it was started in the background, Ctrl-C would be ignored, also by the commands that are ended with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"only these lines: {', '.join(line.name for line in lines())}")
    parser.add_argument("--minutes", type=float, default=10, help="for each line at most (10)")
    parser.add_argument("--longest", type=int, default=3,
                        help="operations in a sequence of the exhaustive scope (3; 4 takes some 40 minutes on two processors)")
    parser.add_argument("--jobs", type=int, default=PROCESSORS, help="chunks of a line at once (as many as there are processors)")
    parser.add_argument("--anew", action="store_true", help="measure again what was measured and did not change since")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {line.name for line in lines()}
    if unknown:
        parser.error(f"no such line: {', '.join(sorted(unknown))}")
    kept = TARGET / "soak.json"

    def read_rows() -> dict[str, dict]:
        return json.loads(kept.read_text()) if kept.exists() else rows_of_page(PAGE.read_text())

    rows = read_rows()
    wanted = [line for line in lines() if line.name in arguments.names or not arguments.names]
    # Before anything is built: work on the tree may go on while this runs.
    commits = Commits()
    measured = {line.name: commits.commit(line) for line in wanted}
    prepare(wanted)
    runner = Runner(60 * arguments.minutes, arguments.longest, arguments.jobs)
    for line in wanted:
        known, commit = rows.get(line.name), measured[line.name]
        same = known if known and known["commit"] == commit and not commit.endswith("-dirty") and not arguments.anew else {}
        # Chunks that were too few for the goal count, and more follow.
        if same and (all(held for _, held in same["figures"]) or not same.get("texts") or same["failed"]):
            print(f"{line.name}: measured at {commit} already", flush=True)
            continue
        outcome = runner.run(line, same.get("texts", []))
        read = [(figure, *figure.read(outcome.texts)) for figure in line.figures]
        figures = [(say(value, share), not outcome.failed and figure.is_reached(value, share)) for figure, value, share in read]
        seconds = outcome.seconds + same.get("seconds", 0)
        # Others may measure other lines meanwhile.
        rows = read_rows()
        rows[line.name] = {"figures": figures, "seconds": seconds, "texts": outcome.texts if line.chunk else [], "failed": outcome.failed, "commit": commit,
                           "date": datetime.date.today().isoformat(), "machine": machine(), "longest": arguments.longest}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(rows, indent=1))
        write_page(rows)
        for figure, (reached, held) in zip(line.figures, figures):
            print(f"{'ok   ' if held else 'SHORT'} {line.name}: {reached} {figure.what} (goal: {figure.goal}; "
                  f"{seconds / 60:.1f} min) {outcome.failed}", flush=True)
    write_page(rows)
    print("\n" + "\n".join(text for text in PAGE.read_text().splitlines() if text.startswith("|")))
    missing = [line.name for line in wanted if not all(held for _, held in rows[line.name]["figures"])]
    print(f"\n{PAGE.relative_to(ROOT)}: " + (f"short of the goal: {', '.join(missing)}" if missing else "every figure is reached"))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
