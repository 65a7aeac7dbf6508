"""fio's own tool turns the results of a simulation into CSV, and finds every count of the histograms in it again."""

import json
import shutil
import sys

from harness import World, check

OURS = True


def run(world: World) -> None:
    # With the Python that has the modules it needs, whatever other Python comes first in the path.
    tool = [sys.executable, shutil.which("fio_jsonplus_clat2csv")]
    check(tool[1] is not None, "fio's package has no fio_jsonplus_clat2csv")
    for name, *mix in [("mixed", "--rw", "randrw", "--rwmixread", "70"), ("reads", "--rw", "randread")]:
        result = world.dir / f"{name}.json"
        common = ["--bs", "4k", "--iodepth", "8", "--runtime", "100ms", "--scale", "64", "--json"]
        result.write_text(world.vsl("sim", "iodrive-320-mlc", *mix, *common).out)
        job = json.loads(result.read_text())["jobs"][0]
        table = world.dir / f"{name}.csv"
        world.run(*tool, result, table)
        world.run(*tool, result, table, "--validate")
        lines = (world.dir / f"{name}_job0.csv").read_text().splitlines()
        check(len(lines) > len(job["read"]["clat_ns"]["bins"]), f"{len(lines)} lines for the bins of reads")
