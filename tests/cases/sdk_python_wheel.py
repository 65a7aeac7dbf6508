"""The Python package as users get it: built as a wheel for every Python from 3.11 on, installed by pip, and tried like the one in the tree."""

from harness import World, check
from harness.python_package import PACKAGE, environment, works

OURS = True
SLOW = True
LIMIT = 600
# Bytes that the package takes at most.
LARGEST = 15 << 20


def run(world: World) -> None:
    world.run(
        world.tool("maturin"), "build", "--locked", "--release", "--manifest-path", PACKAGE / "Cargo.toml", "--out", world.dir / "wheels",
        "--target-dir", world.vsl_path.parents[1], "--interpreter", "/usr/bin/python3", timeout=580,
    )
    [wheel] = (world.dir / "wheels").glob("*.whl")
    check("cp311-abi3" in wheel.name, f"{wheel.name}: not for every Python from 3.11 on")
    check(wheel.stat().st_size < LARGEST, f"{wheel.name}: {wheel.stat().st_size} bytes")
    print(f"figure: bytes of the wheel: {wheel.stat().st_size}")
    python = environment(world)
    pip = world.tools.parent / "wheel/bin/pip"
    world.run(pip, "--python", python, "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", wheel)
    works(world, python)
