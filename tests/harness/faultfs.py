"""A file system under a device that loses what was not synced, and fails on command: testkit/faultfs."""

import json
import os
import socket
from pathlib import Path

from harness.check import check
from harness.servers import answers
from harness.world import World


class FaultFs:
    """A mount of it."""

    def __init__(self, world: World, name: str = "fs", *options: str) -> None:
        self.world = world
        self.path = world.dir / name
        self.store = world.dir / f"{name}.store"
        self.socket = world.dir / f"{name}.control"
        program = world.vsl_path.parent / "faultfs"
        check(os.access(program, os.X_OK), f"{program} is missing: `cargo build --bin faultfs` makes it")
        check(Path("/dev/fuse").exists(), "no /dev/fuse: load the kernel's `fuse` module, and give the container the device")
        self.path.mkdir()
        self.process = world.start(program, self.path, "--store", self.store, "--control", self.socket, *options, log=f"{name}.log")
        world.wait(lambda: self.process.poll() is not None or answers(self.socket), "faultfs to answer")
        check(self.process.poll() is None, f"faultfs ended at once: {(world.dir / f'{name}.log').read_text()}")

    def ask(self, request: object) -> dict:
        """Sends one request to the control socket; fails when it is refused."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect(str(self.socket))
            s.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(s.makefile().readline())
        check(answer["ok"], f"faultfs refused {request}: {answer.get('error')}")
        return answer

    def cut(self, seed: int | None = None) -> dict:
        """Cuts the power. Without a seed all is lost that was not synced, with one it is lost, kept or torn."""
        return self.ask({"cut": "drop" if seed is None else {"torn": seed}})

    def switch_on(self) -> None:
        """Ends the power cut, which took the machine's memory too."""
        for stage in Path(os.environ["OPENVSL_STAGING_DIR"]).iterdir():
            stage.unlink()
        self.ask("switch_on")

    def fault(self, on: list[str], effect: object, **rule: object) -> int:
        """Puts a rule in force; gives its number."""
        return self.ask({"fault": {"on": on, "effect": effect, **rule}})["id"]

    def fail(self, on: list[str], error: str, dirty: str = "keep", **rule: object) -> int:
        """Lets operations fail."""
        return self.fault(on, {"fail": {"error": error, "dirty": dirty}}, **rule)

    def lift(self, number: int | None = None) -> None:
        """Lifts one rule, or all."""
        self.ask({"lift": number})

    def rule(self, number: int) -> dict:
        """A rule in force: what it has `seen`, and how often it `fired`."""
        return next(rule for rule in self.ask("state")["rules"] if rule["id"] == number)
