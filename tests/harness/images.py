"""Disk images with known content."""

import random
from pathlib import Path

from harness.world import MIB


def sparse_image(path: Path, size: int, seed: int) -> Path:
    """A file of random data with holes: of every four MiB one, at a place the seed chooses, is never written."""
    dice = random.Random(seed)
    with open(path, "wb") as image:
        image.truncate(size)
        for group in range(0, size, 4 * MIB):
            hole = dice.randrange(4)
            for part in range(4):
                start = group + part * MIB
                if part != hole and start < size:
                    image.seek(start)
                    image.write(dice.randbytes(min(MIB, size - start)))
    return path
