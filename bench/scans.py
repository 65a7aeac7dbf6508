#!/usr/bin/python3
"""Measures scans: reads in order, in 128 KiB, of data that was written at random in 4 KiB.

OpenVSL stands beside qemu-nbd and nbdkit on a file. Every device is filled in order and overwritten at random first. With `--optimise`,
`vsl optimise` brings OpenVSL's back into order before it is read. Every contender runs in turn in every round.

    python3 bench/scans.py --vsl target/release/vsl --directory /somewhere/on/the/disk
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from contenders import Contender, Server, ours, peers
from jobs import Job, fill, overwrite
from series import Cell, measure
from targets import Target, at_least

HERE = Path(__file__).resolve().parent
DEPTHS = [1, 8]


def optimise(vsl: Path, contender: Contender, directory: Path) -> None:
    """Brings a device that nobody uses into order."""
    store = directory / f"{contender.name.replace(' ', '-')}.img"
    environment = os.environ | {"OPENVSL_RUNTIME_DIR": f"{directory}/run", "OPENVSL_STATE_DIR": f"{directory}/state"}

    def run(*words: str) -> str:
        done = subprocess.run([vsl, *words], env=environment, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise SystemExit(f"vsl {' '.join(words)} failed: {done.stderr}")
        return done.stdout

    run("up")
    try:
        run("attach", f"{store}", "--once")
        before = time.monotonic()
        run("optimise", store.stem, "--rate", "1000", "--wait")
        pieces = run("status", store.stem, "--field", "pieces_per_mib").strip()
        print(f"optimised in {time.monotonic() - before:.1f} s: {pieces} pieces a MiB", flush=True)
    finally:
        run("down")


def measure_scans(
    contenders: list[tuple[Contender, Path | None]], directory: Path, size: int, seconds: float, rounds: int, depths: list[int] = DEPTHS, times: float = 1, in_order: bool = False
) -> list[Cell]:
    """Fills, overwrites and reads every contender; those that come with a `vsl` are optimised before they are read, with `in_order`."""
    servers: dict[str, Server] = {}
    try:
        for contender, vsl in contenders:
            server = servers[contender.name] = contender.start(directory, size)
            fill(server, size)
            overwrite(server, size, times)
            if vsl and in_order:
                server.stop()
                optimise(vsl, contender, directory)
                servers[contender.name] = contender.start(directory, size, make=False)
        jobs = [Job(f"read 128 KiB QD{depth}", "read", 131072, depth, 1) for depth in depths]
        return measure("scans optimised" if in_order else "scans", jobs, servers, size, seconds, rounds)
    finally:
        for server in servers.values():
            server.stop()
        for store in directory.glob("*.img"):
            store.unlink()


def scans_table(cells: list[Cell]) -> str:
    """One row for each depth and contender, beside the first contender."""
    lines = ["| depth | contender | reads /s | of the first | median µs | p99 µs | CPU µs a read |", "|---:|---|---:|---:|---:|---:|---:|"]
    first: dict[int, Cell] = {}
    for cell in cells:
        beside = first.setdefault(cell.job.depth, cell)
        lines.append(
            f"| {cell.job.depth} | {cell.contender} | {cell.median(lambda run: run.iops):,.0f} | {cell.speed / beside.speed:.2f} "
            f"| {cell.median(lambda run: run.median_us):,.0f} | {cell.median(lambda run: run.p99_us):,.0f} | {cell.cpu:.0f} |"
        )
    return "\n".join(lines)


def scans_targets(cells: list[Cell]) -> list[Target]:
    """Beside qemu-nbd, whose file is written in place: level at depth 1, and everywhere once the device was optimised."""
    speeds = {(cell.series, cell.job.depth, cell.contender): cell.speed for cell in cells}
    ratio = {key[:2]: speed / speeds[*key[:2], "qemu-nbd raw"] for key, speed in speeds.items() if key[2] == "vsl file"}
    bounds = {("scans", 1): 1.0, ("scans", 8): 0.8, ("scans optimised", 1): 1.0, ("scans optimised", 8): 1.0}
    return [at_least(f"{series}: QD{depth}, vsl file against qemu-nbd raw", bounds[series, depth], {f"read 128 KiB QD{depth}": found}) for (series, depth), found in ratio.items()]


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, action="append", required=True, help="the program, built with optimisation; more than one to compare them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--gib", type=float, default=1, help="size of each device, GiB")
    parser.add_argument("--depths", type=lambda text: [int(word) for word in text.split(",")], default=DEPTHS)
    parser.add_argument("--times", type=float, default=1, help="how often each device is overwritten")
    parser.add_argument("--optimise", action="store_true", help="bring OpenVSL's device into order first")
    parser.add_argument("--only", nargs="*", default=["qemu-nbd raw", "nbdkit file"], help="peers to measure")
    parser.add_argument("--json", type=Path, help="where every run is written to")
    parser.add_argument("--directory", type=Path, default=HERE / "results" / "scans", help="on the disk to measure")
    options = parser.parse_args()
    size = int(options.gib * (1 << 30)) // (1 << 20) * (1 << 20)
    contenders: list[tuple[Contender, Path | None]] = [(one, None) for one in peers() if one.name in options.only]
    for vsl in options.vsl:
        [one] = [one for one in ours(vsl.resolve()) if one.name == "vsl file"]
        one.name += f" {vsl.stem}" if len(options.vsl) > 1 else ""
        contenders.append((one, vsl.resolve()))
    shutil.rmtree(options.directory, ignore_errors=True)
    options.directory.mkdir(parents=True)
    try:
        cells = measure_scans(contenders, options.directory, size, options.seconds, options.rounds, options.depths, options.times, options.optimise)
    finally:
        shutil.rmtree(options.directory, ignore_errors=True)
    print(scans_table(cells))
    if options.json:
        options.json.write_text(json.dumps([cell.as_json() for cell in cells], indent=1))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
