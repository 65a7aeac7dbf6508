"""What files may lie on, where the bytes that reach the disk are counted: a file system of the kernel's, or a device of ours."""

import os
import subprocess
from pathlib import Path

from harness.world import GIB, World


class PlainFile:
    """A file with ext4 on it, by a loop device, which counts what reaches the file: the journal as well."""

    def __init__(self, world: World, name: str, home: Path) -> None:
        self.world, self.home = world, home
        image = world.dir / f"{name}.ext4"
        with open(image, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 2 * GIB)
        self.loop = world.run("losetup", "--find", "--show", "--direct-io=on", image).out.strip()
        world.run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.loop)
        world.run("mount", self.loop, home)

        self.stat = Path(f"/sys/block/{Path(self.loop).name}/stat")

    def sent(self) -> int:
        return 512 * int(self.stat.read_text().split()[6])

    def close(self) -> None:
        self.world.run("umount", self.home)
        self.world.run("losetup", "-d", self.loop)


class OnDevice:
    """vsl-directfs over a device, which writes to the disk itself."""

    def __init__(self, world: World, name: str, home: Path, *options: str, size: int = 2 * GIB) -> None:
        self.home = home
        device = world.dir / f"{name}.vsl"
        world.vsl("create", device, "--size", size, "--address-space", "1PiB")
        self.program = world.start(world.vsl_path.parent / "vsl-directfs", device, home, "--make", 10000, *options, log="directfs.log")
        world.wait(lambda: os.path.ismount(home), "the mount")

    def sent(self) -> int:
        lines = Path(f"/proc/{self.program.pid}/io").read_text().splitlines()
        return int(dict(line.split(": ") for line in lines)["write_bytes"])

    def close(self) -> None:
        subprocess.run(["fusermount3", "-u", self.home], check=True)
        try:
            self.program.wait(30)
        except subprocess.TimeoutExpired:
            # Whoever has copied this machine's mounts meanwhile keeps the file system alive.
            self.program.kill()
            self.program.wait(30)
