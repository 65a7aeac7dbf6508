"""The Python package, wherever it was installed: its stubs are true, its own tests and its pages' programs run, and a service is reached."""

import json
import re
import shutil
from pathlib import Path

from harness.check import check, equal
from harness.world import MIB, World

TREE = Path(__file__).resolve().parents[2]
PACKAGE = TREE / "sdk/python"


def environment(world: World) -> Path:
    """An interpreter that knows pytest and mypy, which are the tools' own, and not yet the package."""
    venv = world.dir / "venv"
    world.run("/usr/bin/python3", "-m", "venv", "--without-pip", venv)
    tools = world.tools.parent / "wheel"
    world.run("sh", "-c", f"echo {tools}/lib/python3.*/site-packages > $(echo {venv}/lib/python3.*/site-packages)/tools.pth")
    return venv / "bin/python"


def programs(page: str) -> list[str]:
    """The Python programs of a page."""
    return re.findall(r"^```python\n(.*?)^```$", (TREE / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)


def steps(run: Path) -> list[str]:
    """What the steps of a run came to, in the order of their parts."""
    return sorted(line for line in (run / "journal.jsonl").read_text().splitlines() if json.loads(line)["kind"] == "step")


def works(world: World, python: Path) -> None:
    """Checks the package that an interpreter has."""
    world.run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", PACKAGE / "tests")
    world.run(python, "-m", "mypy.stubtest", "openvsl", "--ignore-missing-stub")
    world.run(python, "-m", "mypy", "--strict", "--cache-dir", world.dir / "mypy", PACKAGE / "tests")
    # What the SDK's page shows: a program, and a test.
    program, test = programs("sdk.md")
    world.vsl("create", world.dir / "ledger.vsl", "--size", 64 * MIB)
    world.run(python, "-c", program)
    (world.dir / "test_page.py").write_text(test)
    check("1 passed" in world.run(python, "-m", "pytest", "-q", world.dir / "test_page.py").out, "the page's test")
    # Two need a cluster.
    alone = [program for program in programs("python.md") if "distributed" not in program]
    for number, program in enumerate(alone):
        path = world.dir / f"page{number}.py"
        path.write_text(program)
        world.run(python, path)

    # The notebooks, but for the search of one, which takes minutes, and most volumes of another.
    shutil.copytree(TREE / "examples/notebooks", world.dir, dirs_exist_ok=True)
    for name, quicker, says in (
        ("fit_a_sheet", ["OPENVSL_FIT_ROUNDS=0"], "rows left out"),
        ("mqsim", [], "OpenVSL, one die a chip"),
        ("sepbit", ["OPENVSL_SEPBIT_ALPHAS=1", f"OPENVSL_VSL={world.vsl_path}"], "SepBIT CostBenefit sepbit"),
    ):
        cells = json.loads((world.dir / f"{name}.ipynb").read_text())["cells"]
        program = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        (world.dir / f"{name}.py").write_text(program)
        check(says in world.run("env", *quicker, python, world.dir / f"{name}.py").out, f"what the notebook {name} says")

    asked = ["iodrive-320-mlc", "--rw", "randwrite", "--iodepth", "8", "--runtime", "100ms", "--precondition", "random", "--seed", "7", "--json"]
    program = "import openvsl; print(openvsl.simulate('iodrive-320-mlc', rw='randwrite', iodepth=8, runtime='100ms', precondition='random', seed=7).text)"
    printed = json.loads(world.vsl("sim", *asked).out)
    del printed["schema_version"]
    equal(json.loads(world.run(python, "-c", program).out), printed, "what Python and the command say")

    # A protocol, its parts over processes, is what the command makes of it.
    protocol = PACKAGE / "tests/depths.toml"
    world.run(python, "-c", "import sys, openvsl; openvsl.run_protocol(sys.argv[1], 'parts', workers=2)", protocol)
    world.vsl("lab", "run", protocol, "--out", "whole")
    equal(steps(world.dir / "parts"), steps(world.dir / "whole"), "what a protocol came to")
    check("Reads and writes" in world.vsl("lab", "report", world.dir / "parts").out, "the report of a run from Python")

    device = world.device(64 * MIB)
    address = world.vsl("status", device.name, "--field", "nvme_uri").out.strip()
    program = "import sys, openvsl\nwith openvsl.Device.connect(sys.argv[1]) as d:\n d.write(5, b'y' * 4096, durable=True)\n print(bytes(d.read(5)[:2]), d.exists(5), d.exists(6))"
    equal(world.run(python, "-c", program, address).out, "b'yy' True False\n", "what is read over the socket")
