"""A service of its own with what it exports, for measurements that need more than `vsl serve` does."""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from contenders import Server

# How long a server may take to start or to end, seconds.
PATIENCE = 60


@dataclass
class Exported(Server):
    """One export of a server that has several."""

    name: str

    @property
    def uri(self) -> str:
        """Where fio finds it."""
        return f"nbd+unix:///{self.name}?socket={self.socket}"


class Service:
    """A service of its own."""

    def __init__(self, vsl: Path, directory: Path, first: list[str]) -> None:
        self.program, self.first = vsl, first
        self.runtime = directory / "run"
        self.environment = os.environ | {"OPENVSL_RUNTIME_DIR": str(self.runtime), "OPENVSL_STATE_DIR": str(directory / "state")}
        self.log = open(directory / "service.log", "wb")
        command = [*first, vsl, "up", "--foreground"]
        self.process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + PATIENCE
        while subprocess.run([vsl, "status"], env=self.environment, capture_output=True).returncode != 0:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit(f"the service did not start: {(directory / 'service.log').read_text()}")
            time.sleep(0.05)

    def vsl(self, *arguments: object) -> str:
        """What `vsl` says."""
        words = [str(word) for word in (self.program, *arguments)]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def export(self, name: str) -> Exported:
        """A device or an array, as fio sees it."""
        uri = self.vsl("status", name, "--field", "uri").strip()
        return Exported(self.process, Path(uri.partition("socket=")[2]), name)

    def stop(self) -> None:
        """Ends it."""
        subprocess.run([self.program, "down", "--force"], env=self.environment, capture_output=True, timeout=PATIENCE)
        self.process.wait(timeout=PATIENCE)
        self.log.close()
