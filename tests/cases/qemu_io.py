"""qemu-io writes, zeroes (with and without holes), discards and FUA-writes, and every block reads as it must."""

from harness import MIB, World


def run(world: World) -> None:
    disk = world.device(64 * MIB)
    steps = [
        "write -P 0x5a 0 8M",
        "write -z 64k 64k",  # zeros, keeping the space
        "write -z -u 256k 128k",  # zeros, giving the space back
        "discard 1M 1M",
        "write -f -P 0x33 3M 4k",
        "write -P 0x44 4095k 2k",  # not aligned to a sector: the client reads, changes and writes
        "aio_write -P 0x55 5M 1M",
        "aio_write -P 0x66 6M 1M",
        "aio_flush",
        "flush",
    ]
    reads = [
        "read -P 0x5a 0 64k",
        "read -P 0 64k 64k",
        "read -P 0x5a 128k 128k",
        "read -P 0 256k 128k",
        "read -P 0x5a 384k 640k",
        "read -P 0 1M 1M",
        "read -P 0x5a 2M 1M",
        "read -P 0x33 3M 4k",
        "read -P 0x5a 3076k 1019k",
        "read -P 0x44 4095k 2k",
        "read -P 0x5a 4097k 1023k",
        "read -P 0x55 5M 1M",
        "read -P 0x66 6M 1M",
        "read -P 0x5a 7M 1M",
        "read -P 0 8M 56M",
    ]

    def qemu_io(commands: list[str]) -> None:
        arguments = [word for command in commands for word in ("-c", command)]
        # Without caching in between: each read goes to the device.
        world.run("qemu-io", "-f", "raw", "-t", "none", "-d", "unmap", *arguments, disk.uri)

    qemu_io(steps + reads)
    qemu_io(reads)
