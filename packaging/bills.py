#!/usr/bin/python3
"""Writes the bills of materials of a release: bills.py CARGO-CYCLONEDX DIRECTORY VERSION

One each for the program, the C library, what databases use and the Python package, from the crates that are built into each. The program's also has
the npm packages that are built into the console.
"""

import json
import subprocess
import sys
from pathlib import Path

from licenses import TREE, console_packages

# What each is built from.
BILLS = {"openvsl": "crates/cli", "libvsl": "sdk/c", "openvsl-files": "sdk/files", "openvsl-python": "sdk/python"}
FILE = "openvsl.cdx"


def main() -> None:
    """Asks for the bill of every crate, and keeps those."""
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    program, directory, version = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    asked = ["cyclonedx", "--quiet", "--format", "json", "--manifest-path", "crates/cli/Cargo.toml", "--override-filename", FILE]
    subprocess.run([program, *asked], check=True, cwd=TREE)
    for name, crate in BILLS.items():
        # Our own crates are named by where they lie, which is another place for everybody.
        bill = json.loads((TREE / crate / f"{FILE}.json").read_text().replace(str(TREE), "/openvsl"))
        if name == "openvsl":
            for package, about in console_packages():
                purl = f"pkg:npm/{package.replace('@', '%40')}@{about['version']}"
                licenses = [{"license": {"id": about["license"]}}]
                component = {"type": "library", "bom-ref": purl, "name": package, "version": about["version"], "licenses": licenses, "purl": purl}
                bill["components"].append(component)
        (directory / f"{name}-{version}.cdx.json").write_text(json.dumps(bill, indent=1) + "\n")
    for place in ("crates", "sdk", "testkit"):
        for written in (TREE / place).glob(f"*/{FILE}.json"):
            written.unlink()


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
