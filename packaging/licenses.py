#!/usr/bin/python3
"""Prints the licence texts of every crate that is compiled into the program, as the crates carry them."""

import json
import subprocess
import sys
from pathlib import Path

NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE")
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-musl"]


def texts(directory: Path) -> list[str]:
    """The licence files of a crate."""
    files = sorted(path for path in directory.iterdir() if path.is_file() and path.name.upper().startswith(NAMES))
    return [path.read_text(errors="replace").strip() for path in files]


def main() -> None:
    """Goes from the program through what it depends on, leaving out what only tests and builds use."""
    platforms = [word for target in TARGETS for word in ("--filter-platform", target)]
    command = ["cargo", "metadata", "--locked", "--format-version", "1", *platforms]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    [start] = [package["id"] for package in packages.values() if package["name"] == "openvsl-cli"]
    found, left = set(), [start]
    while left:
        here = left.pop()
        if here not in found:
            found.add(here)
            left += [it["pkg"] for it in nodes[here]["deps"] if any(kind["kind"] is None for kind in it["dep_kinds"])]
    known: dict[str, list[str]] = {}
    for package in sorted((packages[it] for it in found), key=lambda it: (it["name"], it["version"])):
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']} ({package['license'] or 'see its text'})"
        for text in texts(Path(package["manifest_path"]).parent) or ["It carries no text; the names of its licences are above."]:
            known.setdefault(text, []).append(name)
    print("OpenVSL is MIT OR Apache-2.0. These crates are compiled into it; each text stands once, below all that carry it.")
    for text, names in sorted(known.items(), key=lambda it: it[1]):
        print("\n" + "=" * 100)
        print("\n".join(names) + "\n" + "-" * 100 + "\n" + text)
    print(f"{len(found)} crates, {len(known)} texts", file=sys.stderr)


if __name__ == "__main__":
    main()
