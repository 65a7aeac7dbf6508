"""The Python package, of what is built already: its stubs are true, its own tests, its pytest plugin and its pages' programs run, and a service is reached."""

import shutil
import tomllib

from harness import World
from harness.python_package import PACKAGE, environment, works

OURS = True
LIMIT = 480


def run(world: World) -> None:
    python = environment(world)
    [site] = (world.dir / "venv/lib").glob("python3.*/site-packages")
    shutil.copytree(PACKAGE / "python/openvsl", site / "openvsl")
    shutil.copy(world.vsl_path.parent / "lib_openvsl.so", site / "openvsl/_openvsl.abi3.so")
    # A wheel takes the plugin's name from there, too.
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    information = site / "openvsl-0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: openvsl\nVersion: 0\n")
    points = [f"[{group}]\n{name} = {where}\n" for group, entries in project["entry-points"].items() for name, where in entries.items()]
    (information / "entry_points.txt").write_text("".join(points))
    works(world, python)
