#!/usr/bin/python3
"""Measures the key-value store beside RocksDB and redb: on the same kind of device, and on the disk's own file system, in one run.

RocksDB is measured by its own `db_bench` (package rocksdb-tools), the other two by the example `kv_speed`, which does the same: keys of 16
bytes, values that nothing compresses, every transaction durable. Needs root, for mounts, and a machine that does nothing else.

    cargo build --release -p openvsl-cli -p openvsl-files -p openvsl --bins --example kv_speed
    python3 bench/kv.py --vsl target/release/vsl
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]
from disks import OnDevice, PlainFile  # noqa: E402
from harness.cleanup import MARK, clean  # noqa: E402
from harness.world import GIB, World  # noqa: E402
from protocols import keep  # noqa: E402

KEY_BYTES = 16
# As the example has it.
CACHE_BYTES = 64 << 20
# Keys for each length of values, bytes: of the longer ones the records take a part of the device that makes it groom.
KEYS = {100: 300_000, 1024: 300_000, 8192: 60_000}
# What is done, how many threads do it, and what is told of it.
PHASES = {
    "fill": ("fill", 1), "put": ("put", 1), "put, 4 threads": ("put", 4), "put, 16 threads": ("put", 16),
    "read": ("read", 1), "read, 4 threads": ("read", 4), "overwrite": ("churn", 1),
}  # fmt: skip


@dataclass
class Figures:
    """What a phase came to, a value a round."""

    per_s: list[float] = field(default_factory=list)
    p99_us: list[float] = field(default_factory=list)
    # Bytes that reached the disk for each byte of keys and values.
    amplification: list[float] = field(default_factory=list)


class Ours:
    """The store on a device that this program's process opens itself."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench, self.path = bench, bench.world.dir / f"{name}.vsl"
        bench.world.vsl("create", self.path, "--size", GIB, "--address-space", "1TiB", "--sector", 512)

    def run(self, phase: str, value_bytes: int, threads: int) -> dict[str, float]:
        return self.bench.example("openvsl", self.path, phase, value_bytes, threads)

    def close(self) -> None:
        self.path.unlink()


class Peer:
    """A store that lies in files."""

    def __init__(self, bench: Bench, name: str, place: str) -> None:
        self.bench, self.home = bench, bench.world.dir / name
        self.home.mkdir()
        on_device = place == "device"
        self.disk = OnDevice(bench.world, name, self.home, size=GIB) if on_device else PlainFile(bench.world, name, self.home)

    def run(self, phase: str, value_bytes: int, threads: int) -> dict[str, float]:
        before = self.disk.sent()
        found = self.measure(phase, value_bytes, threads)
        os.sync()
        return found | {"written_bytes": self.disk.sent() - before}

    def measure(self, phase: str, value_bytes: int, threads: int) -> dict[str, float]:
        raise NotImplementedError

    def close(self) -> None:
        self.disk.close()
        self.home.rmdir()


class Redb(Peer):
    def measure(self, phase: str, value_bytes: int, threads: int) -> dict[str, float]:
        return self.bench.example("redb", self.home / "redb", phase, value_bytes, threads)


class RocksDb(Peer):
    """By `db_bench`, whose output says what a phase came to."""

    def measure(self, phase: str, value_bytes: int, threads: int) -> dict[str, float]:
        keys = self.bench.keys(value_bytes)
        # What it puts off it does before its bytes are counted.
        benchmarks, options = {
            "fill": ("filluniquerandom,waitforcompaction", ["--batch_size=100"]),
            "churn": ("overwrite,waitforcompaction", ["--batch_size=100", f"--writes={2 * keys}", "--use_existing_db=1"]),
            "put": ("overwrite", [f"--duration={self.bench.seconds:g}", "--use_existing_db=1"]),
            "read": ("readrandom", [f"--duration={self.bench.seconds:g}", "--use_existing_db=1"]),
        }[phase]
        command = [
            "db_bench", f"--db={self.home}/rocksdb", f"--benchmarks={benchmarks}", f"--num={keys}", f"--key_size={KEY_BYTES}",
            f"--value_size={value_bytes}", "--compression_type=none", "--sync=1", f"--cache_size={CACHE_BYTES}", "--histogram=1",
            f"--threads={threads}", *options,
        ]  # fmt: skip
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        line = re.search(r"micros/op (\d+) ops/sec [\d.]+ seconds (\d+) operations", said)
        p99 = re.search(r"P99: ([\d.]+)", said)
        if line is None or p99 is None:
            raise SystemExit(f"db_bench says something else: {said}")
        # Of a batch it tells how long the whole took.
        batch = 100 if phase in ("fill", "churn") else 1
        return {"operations": int(line[2]), "operations_per_s": int(line[1]), "p99_us": float(p99[1]) / batch}


class Bench:
    """One run."""

    def __init__(self, world: World, seconds: float, scale: float) -> None:
        self.world, self.seconds, self.scale = world, seconds, scale
        self.program = world.vsl_path.parent / "examples" / "kv_speed"

    def keys(self, value_bytes: int) -> int:
        return round(KEYS[value_bytes] * self.scale)

    def example(self, store: str, path: Path, phase: str, value_bytes: int, threads: int) -> dict[str, float]:
        words = [self.program, store, path, phase, self.keys(value_bytes), value_bytes, threads, self.seconds]
        return json.loads(subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True).stdout)

    def stores(self, name: str) -> dict[str, Ours | Peer]:
        """All of them, new and empty."""
        return {
            "openvsl, device": Ours(self, f"{name}-ours"),
            "RocksDB, device": RocksDb(self, f"{name}-rocksdb", "device"),
            "redb, device": Redb(self, f"{name}-redb", "device"),
            "RocksDB, ext4": RocksDb(self, f"{name}-rocksdb-ext4", "ext4"),
            "redb, ext4": Redb(self, f"{name}-redb-ext4", "ext4"),
        }

    def measure(self, value_bytes: int, rounds: int) -> dict[str, dict[str, Figures]]:
        """The figures of each store by phase; the stores take turns."""
        figures: dict[str, dict[str, Figures]] = {}
        for number in range(rounds):
            for name, store in self.stores(f"{value_bytes}-{number}").items():
                for phase, (kind, threads) in PHASES.items():
                    found = store.run(kind, value_bytes, threads)
                    one = figures.setdefault(name, {}).setdefault(phase, Figures())
                    one.per_s.append(found["operations_per_s"])
                    one.p99_us.append(found["p99_us"])
                    one.amplification.append(found["written_bytes"] / found["operations"] / (KEY_BYTES + value_bytes))
                    print(f"{value_bytes} {name}, {phase}: {found['operations_per_s']:,.0f}/s, p99 {found['p99_us']:,.0f} us, "
                          f"{one.amplification[-1]:.2f} x", flush=True)  # fmt: skip
                store.close()
        return figures


def table(figures: dict[str, dict[str, Figures]]) -> str:
    """What docs/sdk.md has: medians of the rounds."""
    columns = [*PHASES, "bytes written"]
    lines = ["| store | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for name, phases in figures.items():
        cells = [f"{statistics.median(phases[phase].per_s):,.0f}" for phase in columns[:-1]]
        cells.append(f"{statistics.median(phases['overwrite'].amplification):.2f} ×")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, required=True, help="the program; vsl-directfs and the example are looked for beside it")
    parser.add_argument("--seconds", type=float, default=5, help="of each phase that is not of all keys (5)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--values", type=int, nargs="+", choices=KEYS, default=list(KEYS), help="lengths of values, bytes")
    parser.add_argument("--scale", type=float, default=1, help="share of the keys, for a short run")
    options = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    directory = Path(tempfile.mkdtemp(prefix="vsl-bench.", dir=options.vsl.resolve().parent))
    os.environ |= {MARK: str(directory), "OPENVSL_RUNTIME_DIR": str(directory / "run"), "OPENVSL_STATE_DIR": str(directory / "state")}
    try:
        bench = Bench(World(directory, options.vsl.resolve(), "vsl", Path()), options.seconds, options.scale)
        for value_bytes in options.values:
            figures = bench.measure(value_bytes, options.rounds)
            keep(f"kv_{value_bytes}", [{"store": name, "phase": phase, **asdict(one)} for name, phases in figures.items() for phase, one in phases.items()])
            print(f"\nValues of {value_bytes} bytes, {bench.keys(value_bytes):,} keys\n\n{table(figures)}\n", flush=True)
    finally:
        clean(directory)
        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
