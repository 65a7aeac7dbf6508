"""A device records what fio asks of it over NBD: every request is in the trace, with its size and place, in the order in which it was made."""

import json

from harness import MIB, World, check, equal
from harness.fio import fio

OURS = True


def run(world: World) -> None:
    device = world.device(256 * MIB)
    trace = world.dir / "disk.csv.zst"

    def record(*options: object) -> dict:
        return json.loads(world.vsl("trace", "record", "disk", "--json", *options).out)

    equal(record()["recording"], False, "recording before it began")
    equal(record("--to", trace)["recording"], True, "recording")
    world.vsl("trace", "record", "disk", "--to", world.dir / "second.csv", fails=True)
    check(not (world.dir / "second.csv").exists(), "a recording that was refused left its file")

    job = fio(world, device, "--rw=randrw", "--bsrange=4k-128k", "--iodepth=16", "--size=64m", "--number_ios=5000", "--fsync=100")
    trimmed = fio(world, device, "--rw=randtrim", "--bs=64k", "--iodepth=4", "--size=16m")
    done = record("--stop")
    equal(done["dropped"], 0, "requests left out")
    world.vsl("trace", "record", "disk", "--stop", fails=True)

    info = json.loads(world.vsl("trace", "info", trace, "--json").out)
    equal(info["records"], done["written"], "requests in the trace")
    for op, theirs in [("read", job["read"]), ("write", job["write"]), ("trim", trimmed["trim"])]:
        equal(info["requests"][op]["requests"], theirs["total_ios"], f"{op}s")
        equal(info["requests"][op]["bytes"], theirs["io_bytes"], f"bytes of {op}s")
    check(info["requests"]["flush"]["requests"] >= 10, "no flush was recorded")
    equal(info["out_of_order"], 0, "requests out of order")
    check(info["footprint"]["span_bytes"] <= 64 * MIB, "a request beyond what fio used")
    check(info["requests"]["read"]["response_seconds"]["mean"] > 0, "no response times")
    # A recording that is still on when the service ends is as whole.
    last = world.dir / "last.csv.zst"
    record("--to", last)
    read = fio(world, device, "--rw=randread", "--bs=4k", "--iodepth=16", "--size=64m", "--number_ios=20000")
    world.vsl("down", "--force")
    info = json.loads(world.vsl("trace", "info", last, "--json").out)
    equal(info["requests"]["read"]["requests"], read["read"]["total_ios"], "reads recorded until the service ended")

    # What was recorded is a workload: for a simulated card …
    sim = world.vsl("sim", "iodrive-320-mlc", "--scale", 64, "--trace", trace, "--pace", "depth", "--iodepth", 16, "--json")
    equal(json.loads(sim.out)["jobs"][0]["read"]["total_ios"], job["read"]["total_ios"], "reads played on a card")
