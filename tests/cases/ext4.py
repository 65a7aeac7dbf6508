"""ext4 through nbdfuse and a loop device: a real tree copied, fsck clean after a remount, and fstrim gives the space back."""

import os
import shutil
from pathlib import Path

from harness import GIB, MIB, Device, World, check

ROOT = True
LIMIT = 240


def run(world: World) -> None:
    tree = a_real_tree(world)
    for sector in [4096, 512]:
        on_a_device(world, world.device(1 * GIB, f"disk{sector}", sector=sector), sector, tree)


def on_a_device(world: World, device: Device, sector: int, tree: Path) -> None:
    """All of it, on a device with sectors of that size."""
    fuse, loop = attach(world, device, sector)
    mount = world.dir / "mnt"
    mount.mkdir(exist_ok=True)
    world.run("mkfs.ext4", "-q", "-b", 4096, loop)
    world.run("mount", loop, mount)
    world.run("cp", "-a", tree, mount / "tree")
    world.run("sync", "-f", mount)
    world.run("umount", mount)
    world.run("e2fsck", "-f", "-n", loop)
    detach(world, loop, fuse)

    # Again from the device alone: nothing of the first mount is left in a cache.
    fuse, loop = attach(world, device, sector)
    world.run("mount", loop, mount)
    world.run("diff", "--recursive", "--no-dereference", tree, mount / "tree")
    full = device.path.stat().st_blocks * 512
    shutil.rmtree(mount / "tree")
    world.run("sync", "-f", mount)
    said = world.run("fstrim", "-v", mount).out
    world.run("umount", mount)
    world.run("e2fsck", "-f", "-n", loop)
    detach(world, loop, fuse)

    size = sum(f.stat().st_size for f in tree.rglob("*") if f.is_file() and not f.is_symlink())
    wanted = full - size * 3 // 4
    # The device gives space back as it grooms, so it may take a moment.
    world.wait(lambda: device.path.stat().st_blocks * 512 <= wanted, f"{device.path} to shrink from {full} to {wanted}; {said}", 60)


def attach(world: World, device: Device, sector: int) -> tuple[Path, str]:
    """The device as a file, then as a block device with the same sectors: a loop device has 512 bytes unless told."""
    fuse = world.dir / "fuse"
    fuse.mkdir(exist_ok=True)
    world.start("nbdfuse", fuse / "disk", device.uri, log="nbdfuse.log")
    world.wait((fuse / "disk").exists, "nbdfuse")
    loop = world.run("losetup", "--find", "--show", "--direct-io=on", "--sector-size", sector, fuse / "disk").out.strip()
    return fuse, loop


def detach(world: World, loop: str, fuse: Path) -> None:
    """Takes both away again."""
    world.run("losetup", "-d", loop)
    world.run("fusermount3", "-u", fuse)
    world.wait(lambda: not os.path.ismount(fuse), "nbdfuse to end")


def a_real_tree(world: World) -> Path:
    """Some ten thousand files that are on every Debian, with links and odd sizes, made independent of what is installed there."""
    tree = world.dir / "tree"
    tree.mkdir()
    size = 0
    for root in ["/usr/include", "/usr/share/doc", "/usr/share/perl", "/usr/lib/python3", "/usr/share/zoneinfo", "/usr/bin"]:
        for path in sorted(Path(root).rglob("*")) if Path(root).is_dir() else []:
            target = tree / path.relative_to("/")
            try:
                if path.is_symlink():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.symlink_to(os.readlink(path))
                elif path.is_file():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, target)
                    size += path.stat().st_size
            except PermissionError:
                continue
            if size > 200 * MIB:
                return tree
    check(size > 16 * MIB, f"only {size} bytes of files to copy on this machine")
    return tree
