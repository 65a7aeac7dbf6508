#!/usr/bin/python3
"""Measures how fast cards are simulated, per CPU second on one core, and writes docs/simulation-speed.md."""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from machine import now, processor

HERE = Path(__file__).resolve().parent
# Profile, over-provisioning in per cent, scale, seconds, drive writes before, depth: the arguments of the example.
CASES = [
    ("the academic simulators' geometry", ["mqsim-reference", "25", "1", "5", "4", "32"]),
    ("ioDrive Duo 640 MLC, one module, 1/64", ["iodrive-duo-640-mlc", "14.4", "64", "5", "4", "256"]),
    ("ioDrive Duo 640 MLC, one module, full size", ["iodrive-duo-640-mlc", "14.4", "1", "10", "1", "256"]),
]
# Random 4 KiB writes a second that were published of the Duo in steady state.
PUBLISHED_IOPS = 42_400
# What the best-known academic simulator did on such a machine, on the same geometry.
PEER = {"Write": 33_000, "Read": 143_000, "bytes": 130}


# The whole run that the speed is meant for: both modules of the Duo at full size, with the host in front.
HOURS = 6
WHOLE = f"sim iodrive-duo-640-mlc --array both --rw randwrite --bs 4k --iodepth 16 --numjobs 16 --runtime {HOURS}h --precondition fill --scale full --json"
WHOLE_MARK = "Measured as a whole"


def run(example: Path, arguments: list[str]) -> dict[str, float]:
    """One run: simulated writes and reads a CPU second, and bytes of memory a page."""
    output = subprocess.run([example, *arguments], check=True, capture_output=True, text=True).stdout
    figures = {op: float(rate) for op, rate in re.findall(r"(Write|Read): (\d+) simulated", output, re.M)}
    [books] = re.findall(r"([\d.]+) bytes of books", output, re.M)
    return figures | {"bytes": float(books)}


def extrapolated(writes_per_cpu_s: float) -> str:
    """How long the whole run would take at a module's rate in steady state."""
    writes = PUBLISHED_IOPS * HOURS * 3600
    minutes = writes / writes_per_cpu_s / 60
    return (
        f"{HOURS} hours of the Duo's random writes at the published {PUBLISHED_IOPS:,} a second are {writes / 1e6:,.0f} million: at the last row's rate {minutes:.1f} minutes of one core."
        " That is extrapolated from one module; filling the device and the simulated host come on top."
    )


def whole(vsl: Path) -> str:
    """The whole run, measured."""
    before = os.times()
    output = subprocess.run([vsl, *WHOLE.split()], check=True, capture_output=True, text=True).stdout
    after = os.times()
    user = after.children_user - before.children_user
    writes = sum(job["write"]["total_ios"] for job in json.loads(output)["jobs"])
    return f"{WHOLE_MARK}, {now()}: `vsl {WHOLE}` took {user / 60:.1f} minutes of user time on one core for {writes / 1e6:,.0f} million writes, the fill of the device included."


def measured_before(report: Path) -> list[str]:
    """What an earlier report says of the whole run."""
    lines = report.read_text().splitlines() if report.exists() else []
    return [line for line in lines if line.startswith(WHOLE_MARK)]


def main() -> None:
    """Measures, and writes what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--example", type=Path, required=True, help="the example `module_speed`, built with optimisation")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--report", type=Path, default=HERE.parent / "docs" / "simulation-speed.md")
    parser.add_argument("--whole", type=Path, metavar="VSL", help="also run the whole six hours with this `vsl`: twenty minutes and more")
    options = parser.parse_args()
    runs = "One run" if options.rounds == 1 else f"Medians of {options.rounds} runs"
    lines = [
        "# How fast cards are simulated",
        "",
        "Made by `make bench`; do not edit: run it again. Steady 4 KiB random writes with the groomer at work, then random reads, with every die, channel and the data path"
        f" in time. {runs}, per second of processor time on one core. The first row's geometry is that on which the academic simulators were compared: 8 channels x 2 chips x 1 die x"
        " 2 planes x 128 blocks x 256 pages x 4 KiB, 75 / 750 / 3800 us, 25 % over-provisioning, depth 32; the best-known of them (MQSim) did"
        f" {PEER['Write']:,} writes and {PEER['Read']:,} reads a second on a machine of this kind, with {PEER['bytes']} bytes of memory a page.",
        "",
        f"{now()}, {processor()}.",
        "",
        "| card | writes a CPU second | reads a CPU second | bytes of memory a 4 KiB page |",
        "|---|---:|---:|---:|",
    ]
    for name, arguments in CASES:
        rounds = [run(options.example, arguments) for _ in range(options.rounds)]
        middle = {key: sorted(figures[key] for figures in rounds)[options.rounds // 2] for key in rounds[0]}
        lines.append(f"| {name} | {middle['Write']:,.0f} | {middle['Read']:,.0f} | {middle['bytes']:.1f} |")
        print(lines[-1], flush=True)
    lines += ["", extrapolated(middle["Write"])]
    print(lines[-1], flush=True)
    whole_line = [whole(options.whole)] if options.whole else measured_before(options.report)
    if whole_line:
        lines += ["", *whole_line]
        print(lines[-1], flush=True)
    options.report.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
