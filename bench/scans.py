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
import statistics
import subprocess
import sys
import time
from pathlib import Path

from contenders import Contender, Server, ours, peers
from jobs import Figure, Job, drop_caches, fill, overwrite, run_job

HERE = Path(__file__).resolve().parent


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


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, action="append", required=True, help="the program, built with optimisation; more than one to compare them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--gib", type=float, default=1, help="size of each device, GiB")
    parser.add_argument("--depths", type=lambda text: [int(word) for word in text.split(",")], default=[1, 8])
    parser.add_argument("--times", type=float, default=1, help="how often each device is overwritten")
    parser.add_argument("--optimise", action="store_true", help="bring OpenVSL's device into order first")
    parser.add_argument("--only", nargs="*", default=["qemu-nbd raw", "nbdkit file"], help="peers to measure")
    parser.add_argument("--json", type=Path, help="where every run is written to")
    parser.add_argument("--directory", type=Path, default=HERE / "results" / "scans", help="on the disk to measure")
    options = parser.parse_args()
    size = int(options.gib * (1 << 30)) // (1 << 20) * (1 << 20)
    contenders = [(one, None) for one in peers() if one.name in options.only]
    for vsl in options.vsl:
        [one] = [one for one in ours(vsl.resolve()) if one.name == "vsl file"]
        one.name += f" {vsl.stem}" if len(options.vsl) > 1 else ""
        contenders.append((one, vsl.resolve()))
    shutil.rmtree(options.directory, ignore_errors=True)
    options.directory.mkdir(parents=True)
    servers: dict[str, Server] = {}
    try:
        for contender, vsl in contenders:
            server = servers[contender.name] = contender.start(options.directory, size)
            fill(server, size)
            overwrite(server, size, options.times)
            if vsl and options.optimise:
                server.stop()
                optimise(vsl, contender, options.directory)
                servers[contender.name] = contender.start(options.directory, size, make=False)
        runs: dict[tuple[int, str], list[Figure]] = {}
        for depth in options.depths:
            job = Job(f"read 128 KiB QD{depth}", "read", 131072, depth, 1)
            for _ in range(options.rounds):
                for name, server in servers.items():
                    drop_caches()
                    runs.setdefault((depth, name), []).append(run_job(job, server, size, options.seconds))
    finally:
        for server in servers.values():
            server.stop()
        shutil.rmtree(options.directory, ignore_errors=True)
    print("| depth | contender | reads /s | of the first | median µs | p99 µs | CPU µs a read |\n|---:|---|---:|---:|---:|---:|---:|")
    for (depth, name), of in runs.items():
        middle = {key: statistics.median(getattr(run, key) for run in of) for key in vars(of[0])}
        first = statistics.median(run.iops for run in runs[depth, contenders[0][0].name])
        print(
            f"| {depth} | {name} | {middle['iops']:,.0f} | {middle['iops'] / first:.2f} | {middle['median_us']:,.0f} "
            f"| {middle['p99_us']:,.0f} | {middle['cpu_us_per_io']:.0f} |"
        )
    if options.json:
        rows = [{"depth": depth, "contender": name, "runs": [vars(run) for run in of]} for (depth, name), of in runs.items()]
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
