#!/usr/bin/python3
"""Tests the tests: each defect of testkit/planted must be found by the suite that its patch names, within a minute."""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.patches import Patch, broken, patches, plant

ROOT = Path(__file__).resolve().parent.parent
TARGET = (ROOT / os.environ.get("CARGO_TARGET_DIR", "target")).resolve()
COPY = TARGET / "planted"
LIMIT = 60
# Where a seed is named and finds nothing, because the layer or the simulator changed since, the next ones are tried.
FURTHER_SEEDS = 100_000
# What is built: the crates that are patched, and others whose tests find some of the defects.
BUILT = ["ftl", "media", "device", "array", "cache", "sim", "trace", "lab", "report", "nvme", "export", "card", "rust", "files", "backup", "bucket"]
# Packages that are not called as their folder.
PACKAGES = {"sim": "sim", "rust": "openvsl"}
# What does little work in the suites takes longer to optimise than that saves.
UNOPTIMISED = ["openvsl-lab", "openvsl-export", "openvsl-trace"]
# Options of the simulator for a seed of each kind.
SEEDS = {"seed": [], "encrypted-seed": ["--encrypted"], "die-loss-seed": ["--die-loss"],
         "kill-seed": ["--kills"], "killed-die-seed": ["--die-loss", "--kills"], "batch-seed": ["--batches"],
         "sparse-seed": ["--sparse"], "snapshot-seed": ["--snapshots"],
         "resize-seed": ["--resizes"], "object-seed": ["--objects"], "lease-seed": ["--objects", "--leases"],
         "array-seed": ["--arrays"], "array-snapshot-seed": ["--arrays", "--snapshots"],
         "cache-seed": ["--caches"], "move-seed": ["--moves"], "zone-seed": ["--zones"]}


class Programs:
    """The simulator and the tests, built from a copy of the tree that has all defects in it, and all of them off."""

    def __init__(self, planted: list[Patch]) -> None:
        plant(ROOT, COPY, planted)
        self.tests: dict[tuple[str, str], str] = {}
        self.simulator = ""
        packages = [PACKAGES.get(name, f"openvsl-{name}") for name in BUILT]
        chosen = [word for package in packages for word in ["-p", package]] + ["--features", "openvsl-device/simulation"]
        # Nothing but what is named by a patch: the tests of other targets would take longer to build than these to run.
        suites = [patch.suite.split() for patch in planted]
        targets = {words[1] for words in suites if words[0] in BUILT} - {"lib"}
        tests = [word for name in sorted(targets) for word in ["--test", name]]
        self.build(["test", "--no-run", *chosen, "--lib", *tests])
        # With the tests again: without them crates would have other features, and be compiled once more.
        self.build(["build", *chosen, "--bin", "vsl-sim", *tests])

    def build(self, words: list[str]) -> None:
        """Builds something with cargo, and notes the programs that came of it."""
        # Dependencies are those of every other build. A defect leaves variables unused and code unreachable: no news.
        command = ["cargo", words[0], "--quiet", *words[1:], "--locked", "--message-format=json", "--target-dir", str(TARGET)]
        command += [word for name in UNOPTIMISED for word in ["--config", f"profile.dev.package.{name}.opt-level=0"]]
        # To cargo a crate of the copy is the crate that it was copied from, and what is built of one would count as the other's: with
        # a wrapper, here one that does nothing, crates of a workspace are told apart, and dependencies are still shared.
        environment = {**os.environ, "RUSTC_WORKSPACE_WRAPPER": "/usr/bin/env"}
        built = subprocess.run(command, cwd=COPY, env=environment, stdout=subprocess.PIPE, text=True)
        messages = [json.loads(line) for line in built.stdout.splitlines()]
        if built.returncode != 0:
            said = [message["message"] for message in messages if message["reason"] == "compiler-message"]
            print("".join(message["rendered"] for message in said if message["level"] == "error"), file=sys.stderr)
            raise SystemExit(f"the copy of the tree with all defects in it ({COPY}) could not be built")
        for message in messages:
            if message.get("reason") != "compiler-artifact" or not message.get("executable"):
                continue
            package = re.search(r"(?:crates|testkit|sdk)/(\w+)#", message["package_id"])
            name, kind = message["target"]["name"], message["target"]["kind"]
            if message["profile"]["test"]:
                target = "lib" if "lib" in kind else name
                self.tests[(package[1] if package else "", target)] = message["executable"]
            elif name == "vsl-sim":
                self.simulator = message["executable"]

    def commands(self, suite: str) -> list[list[str]]:
        """What to run for a suite, one after another until something is found."""
        kind, *words = suite.split()
        if kind in SEEDS:
            how = [self.simulator, "--threads", "1", *SEEDS[kind]]
            return [[*how, "--from", words[0], "--seeds", "1"], [*how, "--from", "1", "--seeds", str(FURTHER_SEEDS)]]
        if kind == "exhaustive":
            return [[self.simulator, "--threads", "1", "--exhaustive", words[0], "--recovered", "1"]]
        package, target, name = kind, words[0], words[1]
        if (package, target) not in self.tests:
            raise SystemExit(f"{suite}: {package} has no tests called {target}")
        return [[self.tests[(package, target)], "--exact", name, "--nocapture"]]


def run(command: list[str], defect: str | None, seconds: float) -> tuple[int | None, str]:
    """Runs a suite with a defect switched on: its exit status, or nothing when it took too long; and its last words."""
    environment = {**os.environ, "OPENVSL_MUTANT": defect or ""}
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds, cwd=ROOT)
    except subprocess.TimeoutExpired:
        return None, "not within its time"
    text = done.stdout.decode(errors="replace")
    return done.returncode, text.strip().splitlines()[-1] if text.strip() else ""


def hunt(programs: Programs, defect: str, suite: str) -> tuple[str, float, str, bool]:
    """Whether a defect is found: by what, after how long."""
    began = time.monotonic()
    last = ""
    for command in programs.commands(suite):
        left = LIMIT - (time.monotonic() - began)
        status, last = run(command, defect, max(left, 0.1))
        if status is None:
            break
        if status != 0:
            found = re.match(r"seed (\d+):", last)
            by = f"{suite.split()[0]} {found.group(1)}" if found else suite
            return by, time.monotonic() - began, last, True
    return suite, time.monotonic() - began, last, False


def main() -> int:
    """Gives the exit status: 0 if every defect was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these defects")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    # One more than there are processors: some tests wait most of their time.
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument("--check", action="store_true", help="only see whether every patch applies")
    arguments = parser.parse_args()
    planted = {patch.name: patch for patch in patches(ROOT)}
    faults = broken(ROOT, planted.values())
    if faults:
        raise SystemExit("\n".join(faults))
    if arguments.check:
        print(f"{len(planted)} patches of planted defects apply")
        return 0
    unknown = set(arguments.names) - set(planted)
    if unknown:
        raise SystemExit(f"there is no testkit/planted/NAME.patch for {', '.join(sorted(unknown))}")
    programs = Programs(list(planted.values()))
    wanted = arguments.names or list(planted)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        # A suite that fails anyway would find everything.
        sound = sorted({planted[name].suite for name in wanted})
        for suite, (status, last) in zip(sound, pool.map(lambda s: run(programs.commands(s)[0], None, LIMIT), sound)):
            if status != 0:
                raise SystemExit(f"{suite} finds something without any defect: {last}")
        rows = []
        for name, row in zip(wanted, pool.map(lambda name: hunt(programs, name, planted[name].suite), wanted)):
            by, seconds, last, found = row
            rows.append((name, *row))
            print(f"{'ok    ' if found else 'FAILED'} {name:<22} {by:<60} {seconds:5.1f} s  {planted[name].what}", flush=True)
            if not found or len(wanted) < 4:
                print(f"       {last[:300]}")
    found = sum(row[4] for row in rows)
    slowest = max(row[2] for row in rows)
    if arguments.markdown:
        lines = ["| planted defect | what it does | found by | s |", "|---|---|---|---:|"]
        lines += [f"| `{name}` | {planted[name].what} | `{by}` | {seconds:.1f} |" for name, by, seconds, _, _ in rows]
        arguments.markdown.write_text("\n".join(lines) + "\n")
    print(f"\nplanted defects: {found} of {len(rows)} found, the slowest in {slowest:.1f} s")
    return 0 if found == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
