"""The Python package: built as a wheel, installed, its stubs true, its own tests and its pytest plugin run, and a service is reached."""

import re
from pathlib import Path

from harness import MIB, World, check, equal

OURS = True
LIMIT = 300
SOURCE = Path(__file__).resolve().parents[2]
PACKAGE = SOURCE / "sdk/python"


def run(world: World) -> None:
    tools = world.tools.parent / "wheel/bin"
    # The same profile and target as the program under test: what is built already is not built again.
    world.run(
        world.tool("maturin"), "build", "--locked", "--profile", "dev", "--manifest-path", PACKAGE / "Cargo.toml", "--out", world.dir / "wheels",
        "--target-dir", world.vsl_path.parents[1], "--interpreter", "/usr/bin/python3", timeout=280,
    )
    [wheel] = (world.dir / "wheels").glob("*.whl")
    check("cp311-abi3" in wheel.name, f"{wheel.name}: not for every Python from 3.11 on")
    venv = world.dir / "venv"
    world.run("/usr/bin/python3", "-m", "venv", "--without-pip", venv)
    python = venv / "bin/python"
    world.run(tools / "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", wheel)
    # pytest and mypy are the tools' own; the package is the installed one.
    world.run("sh", "-c", f"echo {tools.parent}/lib/python3.*/site-packages > $(echo {venv}/lib/python3.*/site-packages)/tools.pth")
    world.run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", PACKAGE / "tests")
    # What the SDK's page shows: a program, and a test.
    program, test = re.findall(r"^```python\n(.*?)^```$", (SOURCE / "docs/sdk.md").read_text(), re.DOTALL | re.MULTILINE)
    world.vsl("create", world.dir / "ledger.vsl", "--size", 64 * MIB)
    world.run(python, "-c", program)
    (world.dir / "test_page.py").write_text(test)
    check("1 passed" in world.run(python, "-m", "pytest", "-q", world.dir / "test_page.py").out, "the page's test")
    world.run(python, "-m", "mypy.stubtest", "openvsl", "--ignore-missing-stub")
    world.run(python, "-m", "mypy", "--strict", "--cache-dir", world.dir / "mypy", PACKAGE / "tests")

    device = world.device(64 * MIB)
    address = world.vsl("status", device.name, "--field", "nvme_uri").out.strip()
    program = "import sys, openvsl\nwith openvsl.Device.connect(sys.argv[1]) as d:\n d.write(5, b'y' * 4096, durable=True)\n print(bytes(d.read(5)[:2]), d.exists(5), d.exists(6))"
    equal(world.run(python, "-c", program, address).out, "b'yy' True False\n", "what is read over the socket")
