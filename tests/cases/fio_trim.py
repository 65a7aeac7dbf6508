"""fio trims: trimmed blocks read as zeros, their neighbours as written, and blocks trimmed and written again as rewritten."""

from harness import MIB, World, check, equal
from harness.fio import fio

REGION = 32 * MIB


def run(world: World) -> None:
    device = world.device(4 * REGION)
    written = ["--bs=4k", "--iodepth=16", "--verify=crc32c"]

    def region(first: int, count: int = 1) -> list[str]:
        return [f"--offset={first * REGION}", f"--size={count * REGION}"]

    fio(world, device, "--rw=write", *written, *region(0, 4), "--do_verify=0")
    # Two jobs share the third region, with one connection each.
    trim = fio(
        world, device, "--rw=randtrim", "--bs=4k", "--iodepth=16", "--numjobs=2", f"--offset={2 * REGION}",
        f"--size={REGION // 2}", f"--offset_increment={REGION // 2}",
    )
    equal(trim["trim"]["io_bytes"], REGION, "bytes trimmed")
    rewrite = fio(world, device, "--rw=randtrimwrite", *written, *region(1), "--verify_backlog=64")
    check(rewrite["trim"]["total_ios"] > 0, "fio trimmed nothing before it wrote")

    for untouched in [0, 3]:
        fio(world, device, "--rw=read", *written, *region(untouched))
    zeros = fio(world, device, "--rw=read", "--bs=64k", "--iodepth=4", "--verify=pattern", "--verify_pattern=0x00", *region(2))
    equal(zeros["read"]["io_bytes"], REGION, "bytes read back as zeros")
