"""The file system that the fault tests stand on: what was synced survives its power cuts, nothing else does, and faults come when asked for."""

import errno
import mmap
import os
from pathlib import Path

from harness import MIB, World, check, equal
from harness.faultfs import FaultFs

OURS = True
ROOT = True
BLOCK = 4096


def run(world: World) -> None:
    fs = FaultFs(world)
    survives_only_if_synced(fs)
    names_need_a_sync_of_the_directory(fs)
    tears(fs)
    fails_by_rule(fs)
    fio_finds_it_whole(world, fs)
    world.run("umount", fs.path)
    world.wait(lambda: fs.process.poll() is not None, "faultfs to end once it is unmounted")
    equal(fs.process.returncode, 0, "exit status of faultfs")


def survives_only_if_synced(fs: FaultFs) -> None:
    fd = made(fs, "file", MIB)
    equal(os.fstat(fd).st_blocks, 0, "blocks of a sparse file")
    os.pwrite(fd, b"1" * BLOCK, 0)
    os.fdatasync(fd)
    os.pwrite(fd, b"2" * BLOCK, 0)
    os.pwrite(fd, b"3" * BLOCK, BLOCK)
    os.pwritev(fd, [b"4" * BLOCK], 2 * BLOCK, os.RWF_DSYNC)
    equal(os.pread(fd, 3 * BLOCK, 0), b"2" * BLOCK + b"3" * BLOCK + b"4" * BLOCK, "what was just written")
    equal(os.fstat(fd).st_size, MIB, "size")
    through = os.open(fs.path / "file", os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
    page = mmap.mmap(-1, BLOCK)
    page[:] = b"5" * BLOCK
    os.pwritev(through, [page], 3 * BLOCK)
    fs.cut()
    for what in [lambda: os.pread(fd, 1, 0), lambda: os.stat(fs.path / "file"), lambda: os.fsync(fd)]:
        fails(what, errno.EIO, "without power")
    fs.switch_on()
    fails(lambda: os.pread(fd, 1, 0), errno.EIO, "a file that was open when the power went")
    os.close(fd)
    os.close(through)
    data = (fs.path / "file").read_bytes()
    equal(data[: 4 * BLOCK], b"1" * BLOCK + bytes(BLOCK) + b"4" * BLOCK + b"5" * BLOCK, "what a cut leaves")
    equal(len(data), MIB, "size after the cut")


def names_need_a_sync_of_the_directory(fs: FaultFs) -> None:
    os.close(made(fs, "kept", BLOCK))
    (fs.path / "lost").write_bytes(b"x")
    (fs.path / "kept").rename(fs.path / "renamed")
    (fs.path / "file").unlink()
    equal(sorted(os.listdir(fs.path)), ["lost", "renamed"], "names before the cut")
    fs.cut()
    fs.switch_on()
    equal(sorted(os.listdir(fs.path)), ["file", "kept"], "names after the cut")
    (fs.path / "file").unlink()
    (fs.path / "kept").rename(fs.path / "renamed")
    sync_directory(fs.path)
    fs.cut()
    fs.switch_on()
    equal(os.listdir(fs.path), ["renamed"], "names after a cut that a sync came before")


def tears(fs: FaultFs) -> None:
    fd = made(fs, "torn", MIB)
    os.pwrite(fd, b"o" * MIB, 0)
    os.fsync(fd)
    os.close(fd)
    seen = set()
    for seed in range(24):
        fd = os.open(fs.path / "torn", os.O_RDWR)
        for at in range(0, MIB, 64 * BLOCK):
            os.pwrite(fd, b"n" * 64 * BLOCK, at)
        fs.cut(seed)
        fs.switch_on()
        os.close(fd)
        data = (fs.path / "torn").read_bytes()
        seen |= {"new" if data[at] == ord("n") else "old" for at in range(0, MIB, 512)}
        mixed = [at for at in range(0, MIB, 512) if len(set(data[at : at + 512])) > 1]
        check(len(mixed) <= 16, f"{len(mixed)} sectors are torn within; at most one a write has a bit flipped")
        fd = os.open(fs.path / "torn", os.O_RDWR)
        os.pwrite(fd, b"o" * MIB, 0)
        os.fsync(fd)
        os.close(fd)
    equal(seen, {"new", "old"}, "what torn writes leave")


def fails_by_rule(fs: FaultFs) -> None:
    fd = made(fs, "faulty", MIB)
    fs.fail(["write", "allocate"], "ENOSPC", file="faulty", after=2)
    os.pwrite(fd, b"1", 0)
    os.pwrite(fd, b"2", 1)
    fails(lambda: os.pwrite(fd, b"3", 2), errno.ENOSPC, "the third write")
    fails(lambda: os.posix_fallocate(fd, 0, BLOCK), errno.ENOSPC, "an allocation after it")
    fs.lift()
    os.posix_fallocate(fd, 0, BLOCK)
    rule = fs.fault(["read"], {"short": 512}, range=[BLOCK, 2 * BLOCK], times=1)
    equal(len(os.pread(fd, BLOCK, 0)), BLOCK, "bytes read beside the range")
    equal(len(os.pread(fd, BLOCK, BLOCK)), 512, "bytes of a short read")
    equal(len(os.pread(fd, BLOCK, BLOCK)), BLOCK, "bytes of the next read")
    equal(fs.rule(rule)["fired"], 1, "times that a rule happened")
    fs.lift()
    fs.fail(["sync"], "EIO", dirty="clean", times=1)
    os.pwrite(fd, b"gone", 0)
    fails(lambda: os.fsync(fd), errno.EIO, "a sync that is made to fail")
    os.fsync(fd)
    equal(os.pread(fd, 4, 0), b"gone", "what a failed sync gave up, before the cut")
    fs.cut()
    fs.switch_on()
    os.close(fd)
    equal((fs.path / "faulty").read_bytes()[:4], bytes(4), "what a failed sync gave up, after the cut")


def fio_finds_it_whole(world: World, fs: FaultFs) -> None:
    for options in [["--ioengine=io_uring", "--direct=1", "--iodepth=32"], ["--ioengine=psync", "--direct=0"]]:
        world.run(
            "fio", "--name=whole", f"--filename={fs.path}/fio", "--rw=randwrite", "--bsrange=4k-256k", "--size=16M", "--fsync=32",
            "--verify=crc32c", "--do_verify=1", "--verify_fatal=1", *options,
        )


def made(fs: FaultFs, name: str, size: int) -> int:
    """A new file of that size, durable with its name, open."""
    fd = os.open(fs.path / name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    os.ftruncate(fd, size)
    os.fsync(fd)
    sync_directory(fs.path)
    return fd


def sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def fails(what: object, expected: int, when: str) -> None:
    """Fails unless the call gets that very error."""
    try:
        what()
    except OSError as error:
        equal(errno.errorcode[error.errno], errno.errorcode[expected], f"{when}: error")
        return
    check(False, f"{when}: succeeded, expected {errno.errorcode[expected]}")
