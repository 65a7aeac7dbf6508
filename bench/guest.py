#!/usr/bin/python3
"""Measures NVMe/TCP beside the kernel's own target and beside our NBD, all with the kernel's clients, in one guest, on memory.

A guest without hardware virtualisation is some thirty times slower than the machine, and fio, the client and the server share its two
processors: the figures stand for each other's ratio, and for nothing else.
"""

import argparse
import contextlib
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from harness import nvme  # noqa: E402
from harness.guest import BACKPORTS, DISTRIBUTION, Guest  # noqa: E402
from harness.world import World  # noqa: E402

MEBIBYTES = 256
LOOPBACK = "127.0.0.1"
JOBS = {
    "randwrite 4 KiB QD32": ["--rw=randwrite", "--bs=4k", "--iodepth=32"],
    "randread 4 KiB QD32": ["--rw=randread", "--bs=4k", "--iodepth=32"],
    "write 128 KiB QD8": ["--rw=write", "--bs=128k", "--iodepth=8"],
    "read 128 KiB QD8": ["--rw=read", "--bs=128k", "--iodepth=8"],
}


@dataclass
class Row:
    """I/Os a second of each contender, by job: the median of the rounds, whose order changes."""

    job: str
    iops: dict[str, float]


def measure(vsl: Path, tools: Path, kernel: str, seconds: float, rounds: int) -> tuple[str, list[Row]]:
    """The guest's kernel, and a row for each job."""
    with tempfile.TemporaryDirectory(prefix="vsl-bench.") as directory:
        world = World(Path(directory), vsl, "vsl", tools)
        with Guest(world, kernel, files=[vsl], memory=1536) as guest:
            paths = contenders(guest)
            found: dict[str, dict[str, list[float]]] = {job: {name: [] for name in paths} for job in JOBS}
            for path in paths.values():
                guest.fio(path, "--rw=write", "--bs=1m", "--iodepth=4", f"--size={MEBIBYTES}m", timeout=300)
            for number in range(rounds):
                for job, options in JOBS.items():
                    names = list(paths)
                    for name in names[number % len(names) :] + names[: number % len(names)]:
                        done = guest.fio(paths[name], *options, "--time_based", f"--runtime={seconds}", f"--size={MEBIBYTES}m", "--norandommap")
                        found[job][name].append(done["read" if "read" in job else "write"]["iops"])
            rows = [Row(job, {name: statistics.median(values) for name, values in each.items()}) for job, each in found.items()]
            return guest.version, rows


def contenders(guest: Guest) -> dict[str, str]:
    """The block device of each, all in one guest."""
    guest.run(f"""
        export OPENVSL_RUNTIME_DIR=/tmp/run OPENVSL_STATE_DIR=/tmp/state
        /files/vsl up --nbd-listen {LOOPBACK}:10809 --nvme-listen {LOOPBACK}:4421
        /files/vsl attach memory:{MEBIBYTES}MiB --name nvme
        /files/vsl attach memory:{MEBIBYTES}MiB --name nbd
        modprobe nbd
        nbd-client {LOOPBACK} 10809 /dev/nbd0 -N nbd -b 4096 -C 2""")
    theirs = nvme.kernel_target(guest, MEBIBYTES, 4420)
    nvme.connect(guest, theirs, 4420, address=LOOPBACK)
    found = nvme.cli(guest, f"discover -t tcp -a {LOOPBACK} -s 4421 -q {nvme.HOST_NQN} -I {nvme.HOST_ID}")["records"]
    uuid = guest.run("OPENVSL_RUNTIME_DIR=/tmp/run /files/vsl status nvme --json | grep '\"uuid\"' | cut -d'\"' -f4").strip()
    [ours] = [record["subnqn"] for record in found if record["subnqn"].endswith(uuid)]
    nvme.connect(guest, ours, 4421, address=LOOPBACK)
    return {"vsl NVMe/TCP": nvme.namespace(guest, ours), "nvmet-tcp null_blk": nvme.namespace(guest, theirs), "vsl NBD": "/dev/nbd0"}


def table(version: str, rows: list[Row]) -> str:
    """The rows, as people read them."""
    names = list(rows[0].iops)
    lines = [f"Linux {version}, I/Os a second", "", f"| job | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    lines += [f"| {row.job} | {' | '.join(f'{row.iops[name]:,.0f}' for name in names)} |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    """Measures, and prints what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vsl", type=Path, required=True, help="the program, built with optimisation")
    parser.add_argument("--tools", type=Path, default=Path("target/tools/bin"), help="beside which scripts/install-guest.sh put the guests")
    parser.add_argument("--kernel", choices=[DISTRIBUTION, BACKPORTS], default=DISTRIBUTION)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    # What guests and commands say on their way is no result.
    with contextlib.redirect_stdout(sys.stderr):
        version, rows = measure(options.vsl.resolve(), options.tools.resolve(), options.kernel, options.seconds, options.rounds)
    print(table(version, rows))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
