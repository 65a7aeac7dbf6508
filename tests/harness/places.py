"""Where a database's files are when the power goes: on vsl-directfs over a drill device, or on ext4 over a disk that tears writes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from harness.check import check
from harness.faultfs import FaultFs
from harness.world import GIB, MIB, World


def synced(directory: Path) -> None:
    """Syncs a directory."""
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


class DirectFs:
    """`vsl-directfs` over a drill device of the service."""

    def __init__(self, world: World, name: str, size: int = 512 * MIB, unsynced: str = "random") -> None:
        self.world = world
        self.name = name
        self.unsynced = unsynced
        self.path = world.dir / f"{name}.mount"
        self.path.mkdir()
        self.program: subprocess.Popen | None = None
        world.servers.up()
        world.vsl("create", world.dir / f"{name}.vsl", "--size", size, "--address-space", "1PiB", "--drills")
        world.vsl("attach", world.dir / f"{name}.vsl")
        self.mount("--make", 10000)

    def mount(self, *options: object) -> None:
        uri = self.world.vsl("status", self.name, "--field", "nvme_uri").out.strip()
        self.program = self.world.start(self.world.vsl_path.parent / "vsl-directfs", uri, self.path, *options, log=f"{self.name}.log")
        self.world.wait(lambda: self.program.poll() is not None or os.path.ismount(self.path), "the mount")
        check(self.program.poll() is None, f"vsl-directfs ended at once: exit {self.program.returncode}")

    def unmount(self) -> None:
        """Takes the mount away, and ends the program, which whoever has copied this machine's mounts keeps alive."""
        self.world.wait(lambda: subprocess.run(["fusermount3", "-u", self.path], capture_output=True).returncode == 0 or not os.path.ismount(self.path), "the mount to end")
        try:
            self.program.wait(5)
        except subprocess.TimeoutExpired:
            self.program.kill()
            self.program.wait(30)

    def settle(self) -> None:
        """What was made so far is to be there after every cut."""
        synced(self.path)

    def cut_at(self, program: int, seed: int) -> None:
        """The power goes when the medium is written to for this time from now."""
        self.world.vsl("drill", self.name, "power-cut", "--at-program", program, "--seed", seed, "--unsynced", self.unsynced)

    def cut_now(self) -> None:
        """The power goes, unless it has gone."""
        if "power-cut at" in self.world.vsl("drill", self.name, "list").out:
            self.world.vsl("drill", self.name, "undo", "power-cut")
            self.world.vsl("drill", self.name, "power-cut", "--unsynced", self.unsynced, fails=None)

    def power_on(self) -> str:
        """Brings the device and its files back; says what the cut took."""
        self.unmount()
        self.world.vsl("drill", self.name, "power-on")
        self.mount()
        return "a new mount"


class TearingDisk:
    """ext4 on a loop device over a file whose unsynced writes a power cut loses, keeps or tears."""

    def __init__(self, world: World, name: str, size: int = GIB) -> None:
        self.world = world
        self.path = world.dir / f"{name}.mount"
        self.path.mkdir()
        self.files = FaultFs(world, f"{name}.fs")
        self.disk = self.files.path / "disk"
        self.seed = 0
        with open(self.disk, "wb") as disk:
            disk.truncate(size)
            os.fsync(disk.fileno())
        synced(self.files.path)
        self.loop = ""
        self.mount(make=True)

    def mount(self, make: bool = False) -> None:
        # Others look for a free loop device at the same time.
        self.world.wait(self.set_up, "a loop device")
        if make:
            self.world.run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0", self.loop)
        self.world.run("mount", self.loop, self.path)
        self.path.chmod(0o777)

    def set_up(self) -> bool:
        done = subprocess.run(["losetup", "--find", "--show", "--direct-io=on", self.disk], capture_output=True, text=True)
        self.loop = done.stdout.strip()
        return done.returncode == 0

    def unmount(self) -> None:
        """Takes disk and mount away."""
        self.world.run("umount", self.path)
        self.world.run("losetup", "-d", self.loop)
        # Whoever has copied this machine's mounts meanwhile has the disk open for a while.
        self.world.run("umount", "--lazy", self.files.path)

    def settle(self) -> None:
        """What was made so far is to be there after every cut."""
        self.world.run("sync", "-f", self.path)

    def cut_at(self, program: int, seed: int) -> None:
        """The power goes with this write from now."""
        self.seed = seed
        self.files.fault(["write"], {"cut": {"tears": seed}}, after=program, times=1)

    def cut_now(self) -> None:
        """The power goes, unless it has gone."""
        if self.files.ask("state")["on"]:
            self.files.ask({"cut": {"tears": self.seed}})

    def power_on(self) -> str:
        """Brings disk and file system back; says what cuts took so far."""
        self.cut_now()
        self.files.lift()
        self.world.wait(lambda: subprocess.run(["umount", self.path], capture_output=True).returncode == 0, "the mount to end")
        self.world.run("losetup", "-d", self.loop)
        self.files.switch_on()
        self.mount()
        damage = self.files.ask("state")["damage"]
        return f"{damage['unsynced']} writes not synced so far, {damage['kept']} of them kept in all or part"
