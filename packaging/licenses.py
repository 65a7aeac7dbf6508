#!/usr/bin/python3
"""Prints the licence texts of all that is compiled into the programs, the libraries and the Python package, as its authors give them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE")
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-musl"]
STARTS = {"openvsl-cli", "openvsl-c", "openvsl-python", "openvsl-files"}


def texts(directory: Path) -> list[str]:
    """The licence files of a crate or package."""
    files = sorted(path for path in directory.iterdir() if path.is_file() and path.name.upper().startswith(NAMES))
    return [path.read_text(errors="replace").strip() for path in files]


def crates() -> Iterator[tuple[str, list[str]]]:
    """What the starts depend on, leaving out what only tests and builds use."""
    platforms = [word for target in TARGETS for word in ("--filter-platform", target)]
    command = ["cargo", "metadata", "--locked", "--format-version", "1", *platforms]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=TREE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found, left = set(), [package["id"] for package in packages.values() if package["name"] in STARTS]
    while left:
        here = left.pop()
        if here not in found:
            found.add(here)
            left += [it["pkg"] for it in nodes[here]["deps"] if any(kind["kind"] is None for kind in it["dep_kinds"])]
    for package in sorted((packages[it] for it in found), key=lambda it: (it["name"], it["version"])):
        if package["source"] is not None:
            name = f"{package['name']} {package['version']} ({package['license'] or 'see its text'})"
            yield name, texts(Path(package["manifest_path"]).parent)


def console_packages() -> list[tuple[str, dict]]:
    """The npm packages that are built into the console, by name."""
    lock = json.loads((TREE / "console/package-lock.json").read_text())
    return [(path.removeprefix("node_modules/"), package) for path, package in sorted(lock["packages"].items()) if path and not package.get("dev")]


def console() -> Iterator[tuple[str, list[str]]]:
    """What the console has in it, once it is built; and the copies that reports have."""
    for name, package in console_packages():
        yield f"{name} {package['version']} (npm, {package['license']})", texts(TREE / "console/node_modules" / name)
    for path in sorted(TREE.glob("crates/chart/assets/*.LICENSE")):
        yield f"{path.stem} (in reports)", [path.read_text().strip()]


def main() -> None:
    """Prints each text once."""
    known: dict[str, list[str]] = {}
    number = 0
    for name, found in [*crates(), *console()]:
        number += 1
        for text in found or ["It carries no text; the names of its licences are above."]:
            known.setdefault(text, []).append(name)
    print("OpenVSL is MIT OR Apache-2.0. It has the following in it; each text stands once, below all that carry it.")
    for text, names in sorted(known.items(), key=lambda it: it[1]):
        print("\n" + "=" * 100)
        print("\n".join(names) + "\n" + "-" * 100 + "\n" + text)
    print(f"{number} crates and packages, {len(known)} texts", file=sys.stderr)


if __name__ == "__main__":
    main()
