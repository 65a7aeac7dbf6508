#!/usr/bin/python3
"""Measures what snapshots cost: making one, writing beside many, and finding what changed.

OpenVSL stands beside the internal snapshots of a qcow2 image that qemu-storage-daemon serves. Of each there are two, filled alike and written at
random in 4 KiB at depth 32: one never has a snapshot; of the other snapshots are made one after another, and then it has all of them. They take
turns, round by round, so that what the machine does meanwhile meets all of them.

    python3 bench/snapshots.py --vsl target/release/vsl --directory /somewhere/on/the/disk
"""

import argparse
import itertools
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from jobs import fill, fio, overwrite

HERE = Path(__file__).resolve().parent
SNAPSHOTS = 64


class Vsl:
    """A device in a service of its own."""

    name = "vsl"

    def __init__(self, vsl: Path, directory: Path, size: int, raw: int) -> None:
        self.vsl = vsl
        self.environment = os.environ | {"OPENVSL_RUNTIME_DIR": f"{directory}/run", "OPENVSL_STATE_DIR": f"{directory}/state"}
        self.run("up")
        self.run("create", str(directory / "bench.vsl"), "--size", str(size), "--raw", str(raw))
        self.run("attach", str(directory / "bench.vsl"))
        self.api = directory / "run" / "api.sock"
        self.uri = f"nbd+unix:///bench?socket={directory / 'run' / 'nbd.sock'}"

    def run(self, *words: str) -> str:
        """Runs a command that must succeed."""
        with open(Path(self.environment["OPENVSL_STATE_DIR"]).with_name("out"), "w+") as out:
            # The service that `up` leaves behind would hold a pipe open.
            subprocess.run([self.vsl, *words], env=self.environment, stdout=out, check=True)
            out.seek(0)
            return out.read()

    def snapshot(self, name: str) -> None:
        """Makes one, as the API is asked: a command has to start first."""
        body = json.dumps({"name": name}).encode()
        with socket.socket(socket.AF_UNIX) as api:
            api.connect(str(self.api))
            head = f"POST /api/v1/devices/bench/snapshots HTTP/1.1\r\nHost: vsl\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            api.sendall(head.encode() + body)
            answer = b"".join(iter(lambda: api.recv(1 << 16), b""))
        if b" 20" not in answer.split(b"\r\n")[0]:
            raise SystemExit(f"no snapshot was made: {answer.decode()}")

    def stop(self) -> None:
        """Ends it."""
        self.run("down")


class Qcow2:
    """A qcow2 image in qemu-storage-daemon, which makes internal snapshots while it serves."""

    name = "qcow2"

    def __init__(self, directory: Path, size: int) -> None:
        image, sock, monitor = directory / "bench.qcow2", directory / "qemu.sock", directory / "monitor.sock"
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", image, str(size)], check=True)
        self.process = subprocess.Popen([
            "qemu-storage-daemon", "--chardev", f"socket,path={monitor},server=on,wait=off,id=m", "--monitor", "chardev=m",
            "--blockdev", f"file,node-name=file,filename={image},cache.direct=on,aio=io_uring", "--blockdev", "qcow2,node-name=disk,file=file",
            "--nbd-server", f"addr.type=unix,addr.path={sock},max-connections=64", "--export", "nbd,id=e,node-name=disk,name=,writable=on",
        ])  # fmt: skip
        while not (monitor.exists() and sock.exists()):
            time.sleep(0.01)
        self.monitor = socket.socket(socket.AF_UNIX)
        self.monitor.connect(str(monitor))
        self.answers = self.monitor.makefile()
        self.answers.readline()
        self.ask("qmp_capabilities")
        self.uri = f"nbd+unix:///?socket={sock}"

    def ask(self, command: str, **arguments: str) -> None:
        """Asks its monitor, and waits for the answer."""
        self.monitor.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        while "event" in (answer := json.loads(self.answers.readline())):
            pass
        if "error" in answer:
            raise SystemExit(f"{command}: {answer['error']['desc']}")

    def snapshot(self, name: str) -> None:
        """Makes one."""
        self.ask("blockdev-snapshot-internal-sync", device="disk", name=name)

    def stop(self) -> None:
        """Ends it."""
        self.process.terminate()
        self.process.wait()


@dataclass
class Target:
    """What a Server is to bench/jobs.py: somewhere to connect to."""

    uri: str


@dataclass
class Phase:
    """What was seen in one phase, over its rounds."""

    writes: list[float] = field(default_factory=list)
    p999_ms: list[float] = field(default_factory=list)
    longest_ms: list[float] = field(default_factory=list)

    def add(self, result: dict) -> None:
        """Takes a report of fio."""
        side = result["jobs"][0]["write"]
        self.writes.append(side["iops"])
        self.p999_ms.append(side["clat_ns"]["percentile"]["99.900000"] / 1e6)
        self.longest_ms.append(side["clat_ns"]["max"] / 1e6)


def load(uri: str, size: int, seconds: float) -> dict:
    """Random writes of 4 KiB."""
    return fio([f"--uri={uri}", "--rw=randwrite", "--bs=4096", "--iodepth=32", f"--size={size}", "--time_based", f"--runtime={round(seconds * 1000)}ms"])


def beside_snapshots(contender: Vsl | Qcow2, size: int, seconds: float, names: list[str]) -> tuple[dict, list[float]]:
    """The same, while snapshots are made one after another; and how long each took, milliseconds."""
    results: list[dict] = []
    writer = threading.Thread(target=lambda: results.append(load(contender.uri, size, seconds)))
    writer.start()
    took = []
    for name in names:
        time.sleep(seconds / (len(names) + 1))
        began = time.monotonic()
        contender.snapshot(name)
        took.append((time.monotonic() - began) * 1000)
    writer.join()
    return results[0], took


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, required=True, help="the program, built with optimisation")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--mib", type=int, default=1024, help="size of each device, MiB")
    parser.add_argument("--raw", type=int, default=24, help="raw space for each byte of the device: what snapshots hold must have room")
    parser.add_argument("--only", choices=["vsl", "qcow2"], help="one of the two")
    parser.add_argument("--directory", type=Path, default=HERE / "results" / "snapshots", help="on the disk to measure")
    options = parser.parse_args()
    size = options.mib << 20
    shutil.rmtree(options.directory, ignore_errors=True)
    options.directory.mkdir(parents=True)
    # Of each the one that gets snapshots, and the one that does not.
    pairs: list[list[Vsl | Qcow2]] = []
    try:
        for name in ["vsl", "qcow2"]:
            if options.only not in (None, name):
                continue
            pair: list[Vsl | Qcow2] = []
            pairs.append(pair)
            for which in ["with", "without"]:
                directory = options.directory / f"{name}-{which}"
                directory.mkdir()
                pair.append(Vsl(options.vsl.resolve(), directory, size, options.raw * size) if name == "vsl" else Qcow2(directory, size))
        phases = {pair[0].name: {phase: Phase() for phase in ["none", "being made", "all there"]} for pair in pairs}
        made: dict[str, list[float]] = {pair[0].name: [] for pair in pairs}
        for one in itertools.chain(*pairs):
            fill(Target(one.uri), size)
            overwrite(Target(one.uri), size, 1)
        share = SNAPSHOTS // options.rounds
        for number in range(options.rounds):
            for one, other in pairs:
                phases[one.name]["none"].add(load(other.uri, size, options.seconds))
                names = [f"s{number * share + at}" for at in range(share)]
                result, took = beside_snapshots(one, size, options.seconds, names)
                phases[one.name]["being made"].add(result)
                made[one.name] += took
        for _ in range(options.rounds):
            for one, other in pairs:
                phases[one.name]["none"].add(load(other.uri, size, options.seconds))
                phases[one.name]["all there"].add(load(one.uri, size, options.seconds))
        print("| | snapshots | 4 KiB writes /s | to none | p99.9 ms | longest ms |\n|---|---|---:|---:|---:|---:|")
        for name, seen in phases.items():
            base = statistics.median(seen["none"].writes)
            for phase, of in seen.items():
                writes = statistics.median(of.writes)
                print(f"| {name} | {phase} | {writes:,.0f} | {writes / base:.2f} | {statistics.median(of.p999_ms):.1f} | {max(of.longest_ms):.0f} |")
        for name, took in made.items():
            print(f"{name}: a snapshot was made in {statistics.median(took):.1f} ms (median), {sorted(took)[int(len(took) * 0.9)]:.1f} ms (90th percentile), {max(took):.0f} ms at most")
    finally:
        for one in itertools.chain(*pairs):
            one.stop()
        shutil.rmtree(options.directory, ignore_errors=True)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
