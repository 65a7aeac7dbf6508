#!/usr/bin/python3
"""An emulated card beside the same card in virtual time: 4 KiB random reads and writes through fio and NBD, and how well the pace is kept.

Prints a table in Markdown. Only ratios mean something: the virtual side is arithmetic, the emulated side runs on the wall's clock.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from dataclasses import astuple, dataclass
from pathlib import Path

DEPTHS = (1, 4, 16, 32)
REGION = "512m"  # bytes of the device that are used, written once before


@dataclass
class Figures:
    """Of one run."""

    iops: float
    mean_us: float


@dataclass
class Round(Figures):
    """Of one run of the emulated card: also how its pace was kept."""

    p50_us: float
    p99_us: float
    p99_percent: float


def median(rounds: list[Round]) -> Round:
    """The median of each figure by itself."""
    return Round(*(statistics.median(values) for values in zip(*map(astuple, rounds))))


class Bench:
    """A service of its own with one emulated card."""

    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options = options
        self.directory = directory
        self.first = ["chrt", "-f", "20"] if options.realtime else []
        self.environment = os.environ | {
            "OPENVSL_RUNTIME_DIR": str(directory / "run"), "OPENVSL_STATE_DIR": str(directory / "state"),
        }
        self.file = Path(tempfile.mkdtemp(prefix="vsl-emulated.", dir=options.store)) / "card.vsl"

    def run(self, *command: object) -> str:
        """What a command says."""
        words = [str(word) for word in command]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def vsl(self, *arguments: object) -> str:
        """What `vsl` says."""
        return self.run(self.options.vsl, *arguments)

    def begin(self) -> None:
        """Makes the card and writes the region once."""
        self.vsl("create", self.file, "--emulate", self.options.profile, "--scale", self.options.scale)
        # Memory that is touched for the first time would be slower than the card, on many a virtual machine.
        self.run("fallocate", "--length", self.file.stat().st_size, self.file)
        self.run(*self.first, self.options.vsl, "up")
        self.attach()
        self.fio("--rw=write", "--bs=128k", "--iodepth=8")

    def attach(self) -> None:
        """Attaches the card: its books of pacing begin anew."""
        self.vsl("attach", self.file, "--once")
        self.uri = self.vsl("status", "card", "--field", "uri").strip()

    def end(self) -> None:
        """Leaves nothing behind."""
        subprocess.run([self.options.vsl, "down", "--force"], env=self.environment, capture_output=True, timeout=60)
        shutil.rmtree(self.file.parent, ignore_errors=True)

    def fio(self, *job: str) -> str:
        """fio's report."""
        return self.run(
            *self.first, "fio", "--name=measure", "--ioengine=nbd", f"--uri={self.uri}", f"--size={REGION}", "--output-format=json", *job,
        )

    def emulated(self, rw: str, depth: int) -> Round:
        """fio on the card."""
        self.vsl("detach", "card")
        self.attach()
        report = self.fio(f"--rw={rw}", "--bs=4k", f"--iodepth={depth}", "--time_based", f"--runtime={self.options.seconds}", "--ramp_time=1")
        pacing = json.loads(self.vsl("status", "card", "--json"))["devices"][0]
        seen = figures(report)
        return Round(seen.iops, seen.mean_us, pacing["pacing_p50_us"], pacing["pacing_p99_us"], pacing["pacing_p99_percent"])

    def virtual(self, rw: str, depth: int) -> Figures:
        """The same in virtual time, with the cost of the card's Linux driver."""
        report = self.vsl(
            "sim", self.options.profile, "--scale", self.options.scale, "--rw", rw, "--bs", "4k", "--iodepth", depth,
            "--size", REGION, "--precondition", "fill", "--ramp-time", 1, "--runtime", self.options.seconds, "--driver", "linux", "--json",
        )
        return figures(report)


def figures(report: str) -> Figures:
    """From fio's JSON, or JSON of its shape."""
    job = json.loads(report[report.index("{") :])["jobs"][-1]
    side = job["read"] if job["read"]["total_ios"] else job["write"]
    return Figures(side["iops"], side["lat_ns"]["mean"] / 1000)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, default=Path("target/release/vsl"))
    parser.add_argument("--profile", default="iodrive-320-mlc")
    parser.add_argument("--scale", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=5, help="of each run")
    parser.add_argument("--rounds", type=int, default=3, help="of all runs; medians are printed")
    parser.add_argument("--store", type=Path, default=Path("/dev/shm"), help="where the device file lies")
    parser.add_argument("--realtime", action="store_true", help="with real-time priority, where others use the machine (needs root)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vsl-bench.") as directory:
        bench = Bench(options, Path(directory))
        try:
            bench.begin()
            cells = [(rw, depth) for rw in ("randread", "randwrite") for depth in DEPTHS]
            virtual = {cell: bench.virtual(*cell) for cell in cells}
            # All cells once, then all again: what the machine's neighbours do in one minute does not fall on one cell alone.
            rounds = [{cell: bench.emulated(*cell) for cell in cells} for _ in range(options.rounds)]
            print("| 4 KiB random | virtual IOPS | emulated IOPS | ratio | virtual mean | emulated mean | ratio | error p50 | error p99 | p99 of its time |")
            print("|---|---|---|---|---|---|---|---|---|---|")
            for cell in cells:
                card, seen = virtual[cell], median([figures[cell] for figures in rounds])
                print(
                    f"| {cell[0][4:]}, QD {cell[1]} | {card.iops:,.0f} | {seen.iops:,.0f} | {seen.iops / card.iops:.2f} "
                    f"| {card.mean_us:.1f} us | {seen.mean_us:.1f} us | {seen.mean_us / card.mean_us:.2f} "
                    f"| {seen.p50_us:.1f} us | {seen.p99_us:.1f} us | {seen.p99_percent:.1f} % |"
                )
        finally:
            bench.end()


if __name__ == "__main__":
    main()
