"""Placements in virtual time: what is written to them, how much less is moved, and what a device without them says."""

import json
from pathlib import Path

from harness import World, check, equal

OURS = True
LIMIT = 60
EXAMPLES = Path(__file__).parents[2] / "examples" / "placement"
JOB = """
[global]
bs=128k
runtime=200ms
time_based
fdp=1
[log]
rw=write
size=50%
plids=1
[objects]
rw=randwrite:8
ba=1m
size=40%
offset=50%
plids=2,3
plid_select=random
"""


def run(world: World) -> None:
    cache = cached(world)
    mixed = cached(world, "--unplaced")
    told, untold = (phase["write_amplification"]["total"] for phase in (cache, mixed))
    # Published are 1.03 and 3.5.
    check(told < 1.1 and 3 < untold < 4, f"write amplification of {told} with placements, {untold} without")
    soc, loc = cache["placed_bytes"][:2]
    equal((sum(cache["placed_bytes"][2:]), soc + loc), (0, cache["host_written_bytes"]), "bytes of other placements, and of these two")
    check(0.45 < soc / loc / 2 < 0.55, f"half of the bytes to each, not {soc} and {loc}")
    check("placed_bytes" not in mixed, "nothing is told apart without placements")
    # A job file of fio says the same in its words.
    job = world.dir / "fdp.fio"
    job.write_text(JOB)
    written = used(world, "--job", job, "--groomer", "placement")["placed_bytes"]
    check(all(written[1:4]) and not any(written[4:]) and not written[0], f"bytes of each placement: {written}")
    said = world.vsl(*sim("--job", job, "--groomer", "greedy"), fails=True).err
    check("load 'log': placement" in said and "--groomer placement" in said, f"what a drive without placements says: {said}")


def sim(*options: object) -> list[object]:
    return ["sim", "samsung-pm9d3a-1920", "--scale", 350, *options]


def used(world: World, *options: object) -> dict:
    """What the drive did in the last phase."""
    return json.loads(world.vsl(*sim(*options, "--json")).out)["openvsl"]["phases"][-1]["device_use"]


def cached(world: World, *options: object) -> dict:
    """The example, on a drive that is written over half as often."""
    short = world.dir / "cachelib.toml"
    text = (EXAMPLES / "cachelib.toml").read_text()
    short.write_text(text.replace("capacities = 10", "capacities = 5").replace("capacities = 4", "capacities = 1"))
    return used(world, "--workload", short, *options)
