"""Truncated, foreign, empty, absent, damaged and newer files are refused, each with an error that says which it is, and stay untouched."""

import hashlib
import os
from pathlib import Path

from harness import MIB, World, check, equal

OURS = True
MAGIC = b"OPENVSL\0"


def run(world: World) -> None:
    good = world.dir / "good.vsl"
    world.vsl("create", good, "--size", 64 * MIB, "--yes")
    world.vsl("up")

    text = world.dir / "notes.txt"
    text.write_text("a shopping list\n" * 10_000)
    empty = world.dir / "empty.img"
    empty.touch()
    ext4 = world.dir / "ext4.img"
    world.run("truncate", "-s", "16M", ext4)
    world.run("mkfs.ext4", "-q", "-F", ext4)
    truncated = copy(world, good, "truncated.vsl")
    os.truncate(truncated, good.stat().st_size // 2)
    stub = copy(world, good, "stub.vsl")
    os.truncate(stub, 100)
    newer = copy(world, good, "newer.vsl")
    from_a_newer_program(newer, 999)
    damaged = copy(world, good, "damaged.vsl")
    patch(damaged, 40, b"\xff" * 64)

    refused(world, text, "not an OpenVSL device")
    refused(world, empty, "")
    refused(world, ext4, "not an OpenVSL device")
    refused(world, truncated, "truncated")
    refused(world, stub, "")
    refused(world, newer, "999")
    refused(world, damaged, "damaged")
    absent = world.vsl("attach", world.dir / "absent.vsl", fails=True)
    check("absent.vsl" in absent.text and "No such file" in absent.text, "an absent file: not named as such")

    again = world.vsl("create", good, "--size", 32 * MIB, "--yes", fails=True)
    check("exists" in again.text, "create over a device that exists: not refused as such")
    world.vsl("attach", good, "--name", "good")


def copy(world: World, source: Path, name: str) -> Path:
    """A copy with its holes."""
    world.run("cp", "--sparse=always", source, world.dir / name)
    return world.dir / name


def from_a_newer_program(path: Path, version: int) -> None:
    """Both superblock copies get this version, under a checksum that is right: otherwise they would be damaged."""
    with open(path, "r+b") as file:
        for at in (0, 64 << 10):
            file.seek(at)
            copy = bytearray(file.read(4096))
            end = int.from_bytes(copy[12:16], "little") - 4
            copy[8:12] = version.to_bytes(4, "little")
            copy[end : end + 4] = crc32c(copy[:end]).to_bytes(4, "little")
            file.seek(at)
            file.write(copy)


def crc32c(data: bytes) -> int:
    """The checksum of docs/format.md."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def patch(path: Path, offset: int, new: bytes) -> None:
    """Overwrites bytes at an offset in every copy of the superblock."""
    content = path.read_bytes()
    found = 0
    at = content.find(MAGIC)
    with open(path, "r+b") as file:
        while at >= 0:
            file.seek(at + offset)
            file.write(new)
            found += 1
            at = content.find(MAGIC, at + 1)
    check(found > 0, f"{path} holds no superblock")


def refused(world: World, path: Path, words: str) -> None:
    """Fails unless attach and serve refuse the file with those words, and leave it as it is."""
    before = digest(path)
    for command in [["attach", path], ["serve", path, "--socket", world.dir / "s.sock"]]:
        said = world.vsl(*command, fails=True, timeout=20).text
        check(str(path) in said, f"vsl {command[0]}: the error does not name {path.name}")
        check(words in said, f"vsl {command[0]} {path.name}: the error does not say '{words}'")
    equal(digest(path), before, f"content of {path.name} after it was refused")


def digest(path: Path) -> str:
    """A fingerprint of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
