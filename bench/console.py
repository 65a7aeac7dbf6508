#!/usr/bin/python3
"""What the console and its service cost: the weight of the page as it comes over the wire, and the service's processor time and memory while nobody uses its devices.

Processor time is counted by the kernel for the process, so what else the machine does falsifies it little. Memory is what is resident, less what the devices say that they took.
Alone it prints a table in Markdown; `bench/run.py` puts the same one into its report.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

DEVICES = 2
DEVICE_SIZE = "1GiB"
# What is asked: bytes of the page, per cent of one processor, bytes of memory.
WEIGHT, CPU_PERCENT, MEMORY = 300_000, 1.0, 60_000_000


@dataclass
class Cost:
    """What was measured."""

    seconds: float  # of each figure of processor time
    files: dict[str, int]  # bytes over the wire of everything that the page loads
    idle_percent: float  # of one processor, with attached devices and nobody there
    watched_percent: float  # the same with one page open
    idle_memory: int  # bytes that are resident beyond the devices'
    watched_memory: int

    @property
    def weight(self) -> int:
        """Bytes of the page."""
        return sum(self.files.values())


class Service:
    """A service of its own, with devices that nobody uses."""

    def __init__(self, vsl: Path, directory: Path) -> None:
        self.vsl_path = vsl
        self.environment = os.environ | {"OPENVSL_RUNTIME_DIR": str(directory / "run"), "OPENVSL_STATE_DIR": str(directory / "state")}
        up = json.loads(self.vsl("up", "--listen", "127.0.0.1:0", "--json"))
        self.pid = up["pid"]
        self.address = up["web"][0].rstrip("/")

    def begin(self, directory: Path) -> None:
        """Attaches devices."""
        self.token = json.loads(self.vsl("console", "--json"))["address"].rsplit("#token=", 1)[1]
        for number in range(DEVICES):
            file = directory / f"d{number}.vsl"
            self.vsl("create", file, "--size", DEVICE_SIZE)
            self.vsl("attach", file)

    def vsl(self, *arguments: object) -> str:
        """What `vsl` says."""
        words = [str(word) for word in (self.vsl_path, *arguments)]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def get(self, path: str, timeout: float = 30):
        """An answer of the API, or a file of the console."""
        headers = {"Authorization": f"Bearer {self.token}", "Accept-Encoding": "gzip"}
        return urllib.request.urlopen(urllib.request.Request(self.address + path, headers=headers), timeout=timeout)

    def cpu_seconds(self) -> float:
        """Processor time so far, user and system, over all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Bytes that are resident beyond those that the devices say they took."""
        resident = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return resident - sum(device["memory_bytes"] for device in json.load(self.get("/api/v1/devices")))

    def percent(self, seconds: float) -> float:
        """Processor time in the next seconds, per cent of one processor."""
        began, before = time.monotonic(), self.cpu_seconds()
        time.sleep(seconds)
        return 100 * (self.cpu_seconds() - before) / (time.monotonic() - began)

    def page(self) -> dict[str, int]:
        """Bytes over the wire of the page and of all that it names, each file once."""
        files: dict[str, int] = {}
        waiting = ["index.html"]
        while waiting:
            name = waiting.pop()
            if name in files:
                continue
            with self.get(f"/{'' if name == 'index.html' else name}") as answer:
                packed = answer.read()
                encoding = answer.headers.get("Content-Encoding")
            files[name] = len(packed)
            text = subprocess.run(["gzip", "-dc"], input=packed, stdout=subprocess.PIPE, check=True).stdout if encoding == "gzip" else packed
            # Scripts name their parts, and styles their fonts, beside themselves.
            found = re.findall(rb"(?:assets/|\./|url\()([A-Za-z0-9_.-]+-[A-Za-z0-9_-]{8}\.(?:js|css|svg|otf|woff2|png))", text)
            waiting += [f"assets/{one.decode()}" for one in found]
        return files

    def watched(self, seconds: float) -> float:
        """Processor time with one page open: it reads the stream, and asks for everything each five seconds."""
        done = threading.Event()

        def read() -> None:
            with self.get("/api/v1/stream") as stream:
                while not done.is_set() and stream.readline():
                    pass

        def ask() -> None:
            while not done.wait(5):
                for path in ("/devices", "/alerts", "/health"):
                    self.get(f"/api/v1{path}").read()

        threads = [threading.Thread(target=work, daemon=True) for work in (read, ask)]
        for thread in threads:
            thread.start()
        percent = self.percent(seconds)
        done.set()
        for thread in threads:
            thread.join(30)
        return percent

    def end(self) -> None:
        """Leaves nothing behind."""
        subprocess.run([self.vsl_path, "down", "--force"], env=self.environment, capture_output=True, timeout=60)


def measure_console(vsl: Path, seconds: float) -> Cost:
    """Measures everything, with a service of its own."""
    with tempfile.TemporaryDirectory(prefix="vsl-bench.") as directory:
        service = Service(vsl, Path(directory))
        try:
            service.begin(Path(directory))
            files = service.page()
            # What it does once at the start is over.
            time.sleep(min(5, seconds))
            idle, idle_memory = service.percent(seconds), service.memory()
            watched, watched_memory = service.watched(seconds), service.memory()
            cost = Cost(seconds, files, idle, watched, idle_memory, watched_memory)
            print(f"console: {cost}", flush=True)
            return cost
        finally:
            service.end()


def cost_table(cost: Cost) -> str:
    """What was measured, in Markdown."""

    def row(what: str, value: str, goal: str, met: bool) -> str:
        return f"| {what} | {value} | {goal} | {'met' if met else '**missed**'} |"

    memory = lambda value: f"{value / 1e6:.0f} MB"
    rows = [
        row("the console's page, compressed", f"{cost.weight / 1e3:.0f} kB in {len(cost.files)} files", f"< {WEIGHT / 1e3:.0f} kB", cost.weight < WEIGHT),
        row("processor, nobody there", f"{cost.idle_percent:.2f} %", f"< {CPU_PERCENT:g} %", cost.idle_percent < CPU_PERCENT),
        row("processor, one page open", f"{cost.watched_percent:.2f} %", f"< {CPU_PERCENT:g} %", cost.watched_percent < CPU_PERCENT),
        row("memory beyond the devices', nobody there", memory(cost.idle_memory), f"< {memory(MEMORY)}", cost.idle_memory < MEMORY),
        row("memory beyond the devices', after a page was open", memory(cost.watched_memory), f"< {memory(MEMORY)}", cost.watched_memory < MEMORY),
    ]
    return "\n".join([
        f"The service with {DEVICES} attached devices that nobody uses. Processor time is that of the process over {cost.seconds:g} s, per cent of one "
        "processor; memory is what is resident, less what the devices say that they took.",
        "",
        "| | measured | asked | |",
        "|---|---:|---:|---|",
        *rows,
    ])


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vsl", type=Path, default=Path("target/release/vsl"))
    parser.add_argument("--seconds", type=float, default=60, help="over which processor time is counted")
    options = parser.parse_args()
    print(cost_table(measure_console(options.vsl.resolve(), options.seconds)))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
