#!/usr/bin/python3
"""Measures devices on objects: beside a plain file, beside what their server itself can do, and beside peers on the same server, in one run.

The server is versitygw on a directory; `--server` names it (go install github.com/versity/versitygw/cmd/versitygw@v1.8.0). Every figure is the
median of rounds, and every ratio the median of the ratios of rounds, since the machine's neighbours slow a round as a whole.

    python3 bench/objects.py --vsl target/release/vsl --server ~/go/bin/versitygw --directory /somewhere/on/the/disk
"""

import argparse
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bucket import BUCKET, Bucket, Connection
from contenders import Server
from distant import Distant
from jobs import FioFailed, fill, fio, random_jobs, run_job, sequential_jobs
from machine import describe
from protocols import keep
from service import Service
from zerofs import ZeroFs

HERE = Path(__file__).resolve().parent
MIB = 1 << 20
# What a device on objects uploads at once.
UPLOADS = 4
SETTLE_SECONDS = 600


class Bench:
    """One run."""

    def __init__(self, options: argparse.Namespace, state: Path) -> None:
        self.options, self.directory = options, options.directory
        processors = sorted(os.sched_getaffinity(0))
        if options.apart:
            os.sched_setaffinity(0, processors[:1])
        self.bucket = Bucket(options.server.resolve(), self.directory)
        if options.apart:
            os.sched_setaffinity(0, processors[1:])
        os.environ.update(self.bucket.environment())
        self.service = Service(options.vsl.resolve(), state, [])
        self.rows: list[dict] = []
        self.zero: ZeroFs | None = None

    def stop(self) -> None:
        """Ends what was started."""
        os.kill(self.bucket.process.pid, signal.SIGCONT)
        self.service.stop()
        self.bucket.stop()

    def device(self, name: str, size: int, store: str | None = None) -> Server:
        """A new device, on objects where a store is named."""
        path = self.directory / f"{name}.vsl"
        words = ["create", path, "--size", size]
        if store is not None:
            words += ["--objects", store, "--max-behind", "64GiB"]
            words += ["--endpoint", self.bucket.endpoint] if store.startswith("s3:") else []
        self.service.vsl(*words)
        self.service.vsl("attach", path, "--name", name, "--once")
        return self.service.export(name)

    def number(self, name: str, field: str) -> int:
        """A figure of a device, as the API has it: a command each time would take a third of a processor from what is measured."""
        connection = http.client.HTTPConnection("vsl")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(self.service.runtime / "api.sock"))
        with contextlib.closing(connection):
            connection.request("GET", f"/api/v1/devices/{name}")
            return int(json.load(connection.getresponse())[field])

    def settle(self, name: str) -> None:
        """Waits until the store has what is durable in the journal."""
        deadline = time.monotonic() + SETTLE_SECONDS
        durable = self.number(name, "objects_durable")
        while self.number(name, "objects_remote") < durable:
            if time.monotonic() > deadline:
                raise SystemExit(f"{name}: the store does not follow")
            time.sleep(0.02)

    def quiet(self, name: str) -> None:
        """Waits until nothing is uploaded any more: what was not flushed is made durable within about a second."""
        self.settle(name)
        time.sleep(1.5)
        self.settle(name)

    def row(self, what: str, ours: list[float], theirs: list[float], unit: str, goal: str) -> None:
        """Prints and keeps a line of the table."""
        ratio = statistics.median(one / other for one, other in zip(ours, theirs))
        self.rows.append({"what": what, "ours": ours, "theirs": theirs, "unit": unit})
        print(f"| {what} | {statistics.median(ours):,.0f} {unit} | {statistics.median(theirs):,.0f} {unit} | {ratio:.2f} | {goal} |", flush=True)

    def writes(self) -> None:
        """Writes that fit the journal, beside a device on a plain file: while the store takes them, and while it hangs."""
        size = self.options.mib * MIB
        plain, objects = self.device("plain", size), self.device("journal", size, f"s3://{BUCKET}/writes")
        for server in (plain, objects):
            fill(server, size)
        self.settle("journal")
        for state in ("hangs", "takes them"):
            for job in random_jobs("randwrite", [1, 32], [1]) + sequential_jobs("write", [1]):
                ours, theirs = [], []
                for number in range(self.options.rounds):
                    for server, into in [(objects, ours), (plain, theirs)][:: 1 if number % 2 else -1]:
                        if state == "hangs":
                            os.kill(self.bucket.process.pid, signal.SIGSTOP)
                        figure = run_job(job, server, size, self.options.seconds)
                        os.kill(self.bucket.process.pid, signal.SIGCONT)
                        # The plain file is not measured beside uploads of the round before.
                        self.quiet("journal")
                        into.append(figure.mib_per_second if job.sequential else figure.iops)
                self.row(f"{job.name}, the store {state}", ours, theirs, "MiB/s" if job.sequential else "IOPS", ">= 0.8")
        self.service.vsl("detach", "plain")
        self.service.vsl("detach", "journal")

    def uploads(self) -> None:
        """How fast a backlog gets into the store, beside as many plain PUTs at once."""
        size = self.options.mib * MIB
        ours, theirs = [], []
        for number in range(self.options.rounds):
            theirs.append(self.bucket.put_rate(size // (8 * MIB), UPLOADS))
            name = f"upload{number}"
            server = self.device(name, size, f"s3://{BUCKET}/{name}")
            self.settle(name)
            os.kill(self.bucket.process.pid, signal.SIGSTOP)
            fill(server, size)
            began = time.monotonic()
            os.kill(self.bucket.process.pid, signal.SIGCONT)
            self.settle(name)
            ours.append(self.options.mib / (time.monotonic() - began))
            self.service.vsl("detach", name)
            (self.directory / f"{name}.vsl").unlink()
        self.row("upload of a backlog / PUTs of 8 MiB, 4 at once", ours, theirs, "MiB/s", ">= 0.8")

    def cold_reads(self) -> None:
        """Reads of what only the store has, beside ranged GETs and beside peers on the same server: on this machine, and as far away as stores are."""
        size = self.options.mib * MIB
        server = self.device("first", size, f"s3://{BUCKET}/cold")
        fill(server, size)
        self.service.vsl("detach", "first")
        self.bucket.put_rate(16, UPLOADS)
        distant = Distant(self.bucket.port, self.options.distance_ms / 2)
        here = self.cold_from(size, self.bucket.port, "on this machine", 1000)
        self.cold_from(size, distant.port, f"{self.options.distance_ms:g} ms away", 300)
        self.peers(size, here)

    def cold_from(self, size: int, port: int, where: str, count: int) -> dict[int, list[float]]:
        """The same reads with the server behind a port: the median time of each round, by the size of a read."""
        address = ["--objects", f"s3://{BUCKET}/cold", "--endpoint", f"http://127.0.0.1:{port}"]
        cold: dict[int, list[float]] = {}
        for block in (4096, 65536):
            ours: list[float] = []
            gets: list[float] = []
            for number in range(self.options.rounds):
                name = f"cold{port}-{block}-{number}"
                self.service.vsl("attach", self.directory / f"{name}.vsl", "--name", name, "--once", *address)
                ours.append(read_us(f"--uri={self.service.export(name).uri}", block, size, count))
                self.service.vsl("detach", name)
                gets.append(self.bucket.get_us(block, count, port))
            cold[block] = ours
            self.row(f"cold read of {block >> 10} KiB / ranged GET, the server {where}", ours, gets, "µs", "<= 1.3")
        return cold

    def peers(self, size: int, cold: dict[int, list[float]]) -> None:
        """nbdkit's S3 plugin, s3backer and ZeroFS, each on an object or objects of its own."""
        image = self.directory / "peer.img"
        for name, start in (("nbdkit S3 plugin", self.nbdkit), ("s3backer", self.s3backer), ("ZeroFS", self.zerofs)):
            program = {"nbdkit S3 plugin": "nbdkit", "ZeroFS": "zerofs"}.get(name, name)
            if shutil.which(program) is None:
                print(f"{name}: no `{program}` in the path", flush=True)
                continue
            for block, ours in cold.items():
                theirs = [start(image, size, lambda where, block=block: read_us(where, block, size)) for _ in range(self.options.rounds)]
                if all(theirs):
                    self.row(f"cold read of {block >> 10} KiB / {name}", ours, [float(us or 0) for us in theirs], "µs", "")

    def nbdkit(self, image: Path, size: int, measure: Callable[[str], float]) -> float | None:
        """A server of one object as a disk."""
        if not Path("/usr/lib/x86_64-linux-gnu/nbdkit/plugins/nbdkit-S3-plugin").exists():
            print("nbdkit S3 plugin: not installed (nbdkit-plugin-python, python3-boto3)", flush=True)
            return None
        if not image.exists():
            body = os.urandom(8 * MIB) * (size // (8 * MIB))
            Connection(self.bucket).ask("PUT", f"/{BUCKET}/peer-image", body)
            image.touch()
        sock = self.directory / "nbdkit.sock"
        sock.unlink(missing_ok=True)
        words = ["nbdkit", "-f", "-r", "-U", str(sock), "S3", f"endpoint-url={self.bucket.endpoint}", f"bucket={BUCKET}", "key=peer-image"]
        # The plugin embeds the distribution's Python, which another one that comes first in the path would mislead.
        environment = {**os.environ, **self.bucket.environment(), "PATH": f"/usr/bin:{os.environ['PATH']}"}
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, env=environment)
        try:
            wait_for(sock)
            return measure(f"--uri=nbd+unix:///?socket={sock}")
        finally:
            process.terminate()
            process.wait()

    def s3backer(self, _image: Path, size: int, measure: Callable[[str], float]) -> float | None:
        """A FUSE file whose blocks are objects of 128 KiB (its own default is 4 KiB), without its caches."""
        mount = self.directory / "s3backer"
        mount.mkdir(exist_ok=True)
        secret = self.directory / "s3backer.secret"
        environment = self.bucket.environment()
        secret.write_text(f"{environment['AWS_ACCESS_KEY_ID']}:{environment['AWS_SECRET_ACCESS_KEY']}\n")
        secret.chmod(0o600)
        used = min(size, 128 * MIB)
        words = [
            "s3backer", "-f", f"--accessFile={secret}", f"--baseURL={self.bucket.endpoint}/", "--prefix=s3backer", "--blockSize=128k",
            f"--size={size}", "--blockCacheSize=0", "--force", "-o", "direct_io", BUCKET, str(mount),
        ]
        log = open(self.directory / "s3backer.log", "ab")
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_for(mount / "file")
            marker = self.directory / "s3backer.filled"
            if not marker.exists():
                subprocess.run(["dd", "if=/dev/urandom", f"of={mount}/file", "bs=128k", f"count={used >> 17}", "conv=notrunc,fsync", "status=none"], check=True)
                marker.touch()
            return measure(f"--filename={mount}/file")
        except SystemExit:
            print(f"s3backer did not start: {(self.directory / 's3backer.log').read_text()[-500:]}", flush=True)
            return None
        finally:
            subprocess.run(["fusermount3", "-uz", str(mount)], capture_output=True)
            process.terminate()
            process.wait()
            log.close()

    def zerofs(self, _image: Path, size: int, measure: Callable[[str], float]) -> float:
        """A file system in the store with an NBD server (`cargo install zerofs --locked`), with its caches empty."""
        if self.zero is None:
            self.zero = ZeroFs(str(shutil.which("zerofs")), self.bucket, self.directory, min(size, 128 * MIB))
        return self.zero.measure(measure)

    def attaches(self) -> None:
        """The attach of a large device, by its journal and by a journal that holds nothing, with two amounts of data."""
        mib = self.options.attach_mib
        address = f"file://{self.directory}/large"
        server = self.device("large0", 10 << 40, address)
        print("\n| 10 TiB, mapped | attach by its journal | from the store alone |\n|---|---:|---:|")
        for number, part in enumerate((0, 1)):
            if part:
                # Spread over the whole device, so that the map has as many parts as it would have with all of it written.
                fio([f"--uri={server.uri}", "--rw=randwrite", "--bs=64k", "--iodepth=32", f"--size={10 << 40}", f"--io_size={mib * MIB}", "--end_fsync=1"])
            name = f"large{number * 2}"
            mapped = self.number(name, "mapped_bytes") / (10 << 40)
            took = []
            for new, more in ((name, []), (f"large{number * 2 + 2}", ["--objects", address])):
                self.service.vsl("detach", name)
                name = new
                began = time.monotonic()
                self.service.vsl("attach", self.directory / f"{new}.vsl", "--name", new, "--once", *more)
                took.append(time.monotonic() - began)
            server = self.service.export(name)
            self.rows.append({"what": "attach", "mapped": mapped, "seconds": took})
            print(f"| {mapped * 100:.3f} % | {took[0]:.2f} s | {took[1]:.2f} s |", flush=True)
        self.service.vsl("detach", name)


def read_us(where: str, block: int, size: int, count: int = 1000) -> float:
    """The median of reads at random, each place once, one at a time, in microseconds."""
    engine = "nbd" if where.startswith("--uri") else "psync"
    command = [
        "fio", "--name=cold", f"--ioengine={engine}", where, "--rw=randread", f"--bs={block}", "--iodepth=1", f"--size={min(size, 128 * MIB)}",
        f"--number_ios={count}", "--output-format=json",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise FioFailed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]["clat_ns"]["percentile"]["50.000000"] / 1000


def wait_for(path: Path) -> None:
    """Waits until a file is there."""
    deadline = time.monotonic() + 30
    while not path.exists():
        if time.monotonic() > deadline:
            raise SystemExit(f"{path} does not appear")
        time.sleep(0.05)


def main() -> None:
    """Measures and prints tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, required=True, help="the program, built with optimisation")
    parser.add_argument("--server", type=Path, required=True, help="versitygw")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--mib", type=int, default=512, help="size of each device, MiB")
    parser.add_argument("--distance-ms", type=float, default=5, help="how far away a distant server is, milliseconds")
    parser.add_argument("--attach-mib", type=int, default=10240, help="data in the device of 10 TiB, MiB")
    parser.add_argument("--only", nargs="*", default=["writes", "uploads", "cold_reads", "attaches"], help="what to measure")
    parser.add_argument("--apart", action="store_true", help="the server has one processor, and everything else the others, as if they were two machines")
    parser.add_argument("--directory", type=Path, default=HERE / "results" / "objects", help="on the disk to measure")
    options = parser.parse_args()
    options.directory = options.directory.resolve()
    shutil.rmtree(options.directory, ignore_errors=True)
    options.directory.mkdir(parents=True)
    for key, value in describe(options.directory, options.vsl.resolve()).items():
        print(f"{key}: {value}")
    print("\n| what | device on objects | beside it | ratio | goal |\n|---|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory(prefix="vsl-bench.") as state:
        bench = Bench(options, Path(state))
        try:
            for what in options.only:
                getattr(bench, what)()
        finally:
            bench.stop()
            shutil.rmtree(options.directory, ignore_errors=True)
    keep("objects", bench.rows)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    try:
        main()
    except FioFailed as error:
        raise SystemExit(str(error)) from error
