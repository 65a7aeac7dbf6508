"""`vsl connect` in guests whose kernels have nvme-tcp and nbd: it prints a block device that works, and `vsl disconnect` takes it away."""

from harness import World, check, equal
from harness.guest import BACKPORTS, DISTRIBUTION, Guest, newer_kernel
from harness.installed import VSL, with_libraries

OURS = True
LIMIT = 240


def run(world: World) -> None:
    kernels = [DISTRIBUTION, BACKPORTS] if newer_kernel(world, "`vsl connect` on a newer kernel") else [DISTRIBUTION]
    for kernel in kernels:
        with Guest(world, kernel, files=with_libraries(world), name=kernel) as guest:
            guest.run(f"{VSL} up --nvme-listen 127.0.0.1:4420; {VSL} attach memory:64MiB --name ram")
            # What it takes by itself is the kernel's NVMe; the kernel's NBD where it is told to.
            for options, expected in [("", "/dev/nvme0n1"), ("--by nbd", "/dev/nbd0")]:
                is_a_disk(guest, options, expected)
            guest.run(f"{VSL} down --force; {VSL} up; {VSL} attach memory:64MiB --name ram")
            # Without a port for NVMe it takes the next best.
            is_a_disk(guest, "", "/dev/nbd0")
            equal(guest.errors(), [], f"errors in the log of Linux {guest.version}")


def is_a_disk(guest: Guest, options: str, expected: str) -> None:
    """Connected, used, and gone again."""
    said = guest.run(f"{VSL} connect ram {options} 2>/dev/null").strip()
    equal(said, expected, "the path that is printed")
    size = f"/sys/block/{said.removeprefix('/dev/')}/size"
    equal(guest.read(size), str((64 << 20) // 512), "its size in units of 512 bytes")
    equal(guest.read(f"/sys/block/{said.removeprefix('/dev/')}/queue/logical_block_size"), "4096", "its sectors")
    again = guest.run(f"{VSL} connect ram {options} 2>&1", fails=True)
    check(f"ram is {said} already" in again, again)
    guest.fio(said, "--rw=randwrite", "--bsrange=4k-64k", "--size=8m", "--iodepth=8", "--verify=crc32c", "--do_verify=1")
    guest.run(f"{VSL} disconnect ram")
    guest.run(f"for try in $(seq 100); do [ -s {size} ] && [ $(cat {size}) != 0 ] || exit 0; sleep 0.1; done; exit 1")
    check("not connected" in guest.run(f"{VSL} disconnect ram 2>&1", fails=True), "a second disconnect")
