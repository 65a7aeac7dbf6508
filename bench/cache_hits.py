#!/usr/bin/python3
"""Runs traces of block requests through the layer as a cache and through LRU, S3-FIFO and SIEVE, and prints a table side by side.

The others are those of libcachesim (`pip install libcachesim==0.3.5`). Every one of them sees the same stream of 4 KiB blocks, into which
requests are split, and may hold as many blocks as the layer (`Config::room`). Reads and writes are not told apart. A hit ratio is
that of the whole trace, first requests included; write amplification counts from the moment when the cache was full.

    cargo build --release -p openvsl-ftl --example cache_trace
    python3 bench/cache_hits.py --example target/release/examples/cache_trace cloudPhysicsIO.csv OLTP.lis P3.lis

With `--estimates` it sets beside each other what a cached volume estimates for other rooms while it has one of `--sizes`, and what the layer
does with those rooms. libcachesim is not needed.

    cargo build --release -p openvsl-cache --example estimate_trace
    python3 bench/cache_hits.py --example target/release/examples/cache_trace \\
        --estimates target/release/examples/estimate_trace --sizes 10% cloudPhysicsIO.csv OLTP.lis P3.lis

Formats, told by the name of a file, which may be compressed as `.zst` or `.xz`:

    .csv     with a heading: columns `lbn` (512 bytes) and `size` (bytes), as libCacheSim's cloudPhysicsIO.csv;
             without one: `block` or `block,count`, in 4 KiB, as the example reads it
    .lis     of the ARC paper: first block and count; blocks of 512 bytes with `P` in front of the name, else of 4 KiB
    .trace   of LIRS2: block numbers of four bytes each, little-endian
"""

import argparse
import lzma
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

OTHERS = {"LRU": "LRU", "S3-FIFO": "S3FIFO", "SIEVE": "Sieve"}
BLOCK, SECTOR = 4096, 512

Request = tuple[int, int]


def content(path: Path) -> tuple[str, bytes]:
    """The name of a trace without what says how it is compressed, and its bytes."""
    if path.suffix == ".xz":
        return path.stem, lzma.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return path.stem, subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout
    return path.name, path.read_bytes()


def blocks(first_byte: int, byte_count: int) -> Request:
    """First block and count of a range of bytes."""
    first = first_byte // BLOCK
    return first, (first_byte + max(byte_count, 1) - 1) // BLOCK - first + 1


def requests(path: Path) -> Iterator[Request]:
    """The requests of a trace, in blocks of 4 KiB: the first one and how many."""
    name, data = content(path)
    if name.endswith(".trace"):
        yield from ((number, 1) for (number,) in struct.iter_unpack("<I", data))
        return
    lines = data.decode().splitlines()
    if name.endswith(".lis"):
        for line in lines:
            first, count = map(int, line.split()[:2])
            yield blocks(first * SECTOR, count * SECTOR) if name.startswith("P") else (first, count)
        return
    heading = lines[0].split(",")
    if "lbn" in heading:
        lbn, size = heading.index("lbn"), heading.index("size")
        for line in lines[1:]:
            words = line.split(",")
            yield blocks(int(words[lbn]) * SECTOR, int(words[size]))
        return
    for line in lines:
        first, _, count = line.partition(",")
        yield int(first), int(count or 1)


def layer(example: Path, trace: Path, sizes: list[str], leb: int | None) -> list[dict[str, float]]:
    """What the example says of each size."""
    options = ["--leb", str(leb)] if leb else []
    done = subprocess.run([example, *options, trace, *sizes], check=True, capture_output=True, text=True)
    heading, *rows = (line.split("\t") for line in done.stdout.splitlines())
    return [dict(zip(heading, map(float, row), strict=True)) for row in rows]


def hits(policy: str, stream: Iterable[int], size: int) -> int:
    """How many of the blocks asked for a policy holds that may hold so many."""
    import libcachesim  # Only needed here.

    cache = getattr(libcachesim, policy)(cache_size=size)
    request = libcachesim.Request()
    request.obj_size = 1
    count = 0
    for block in stream:
        request.obj_id = block
        count += cache.get(request)
    return count


def estimates(example: Path, replay: Path, trace: Path, sizes: list[str], leb: int | None) -> None:
    """Prints what a volume estimates beside what the layer does."""
    print("| cache | room | full | estimate | layer | difference | bytes | ns a block |")
    print("|---" * 8 + "|")
    for size, row in zip(sizes, layer(replay, trace, sizes, leb), strict=True):
        done = subprocess.run([example, trace, str(int(row["room"]))], check=True, capture_output=True, text=True)
        _, *said, memory, cost = (line.split("\t") for line in done.stdout.splitlines())
        differences = []
        for (room, ratio, full), replayed in zip(said, layer(replay, trace, [room for room, *_ in said], leb), strict=True):
            found = replayed["hits"] / replayed["asked"]
            differences.append(float(ratio) - found)
            print(f"| {size} | {room} | {'yes' if full == '1' else 'no'} | {ratio} | {found:.4f} | {differences[-1]:+.4f} | {memory[1]} | {cost[1]} |")
        mean, most = sum(map(abs, differences)) / len(differences), max(map(abs, differences))
        print(f"\nof {size}: mean difference {mean:.4f}, largest {most:.4f}\n", flush=True)


def main() -> None:
    """Prints a table for each trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--example", type=Path, required=True, help="cache_trace, built with optimisation")
    parser.add_argument("--estimates", type=Path, help="estimate_trace, built with optimisation: compares estimates")
    parser.add_argument("--sizes", default="1%,3%,10%,20%,40%", help="blocks that a cache may hold, or share of the trace's footprint")
    parser.add_argument("--leb", type=int, help="slots of a LEB; as the example chooses without it")
    parser.add_argument("traces", nargs="+", type=Path)
    arguments = parser.parse_args()
    sizes = arguments.sizes.split(",")
    for path in arguments.traces:
        trace = list(requests(path))
        stream = [block for first, count in trace for block in range(first, first + count)]
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.writelines(f"{first},{count}\n" for first, count in trace)
            file.flush()
            if arguments.estimates:
                print(f"\n{path.name}: {len(trace)} requests, {len(stream)} blocks of 4 KiB\n")
                estimates(arguments.estimates, arguments.example, Path(file.name), sizes, arguments.leb)
                continue
            rows = layer(arguments.example, Path(file.name), sizes, arguments.leb)
        print(f"\n{path.name}: {len(trace)} requests, {len(stream)} blocks of 4 KiB, {int(rows[0]['footprint'])} different ones\n")
        others = [*OTHERS, "layer", "moved", "metadata", "amplification", "bytes a block"]
        print("| cache | blocks | slots of a LEB | " + " | ".join(others) + " |")
        print("|---" * (3 + len(others)) + "|")
        for size, row in zip(sizes, rows, strict=True):
            room = int(row["room"])
            ratios = [hits(policy, stream, room) / len(stream) for policy in OTHERS.values()] + [row["hits"] / row["asked"]]
            shares = [row["moved"] / row["filled"], row["metadata"] / row["filled"]] if row["filled"] else [0, 0]
            cells = [f"{ratio:.4f}" for ratio in ratios] + [f"{share:.3f}" for share in shares]
            cells += [f"{row['amplification']:.3f}", f"{row['memory']:.1f}"]
            print(f"| {size} | {room} | {int(row['slots'])} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
