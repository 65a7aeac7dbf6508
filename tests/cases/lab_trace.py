"""A protocol that plays a trace through fio: every request of it is made once, at the depth asked for, on a file and on a device of ours."""

import json

from harness import MIB, World, check, equal
from harness.lab import steps

OURS = True

REQUESTS = 3000
PROTOCOL = f"""
name = "mail"
title = "Mail"
description = "A mail server"
follows = "Nobody"
[[test]]
name = "mail"
title = "Mail"
[[test.stage]]
name = "measure"
role = "measure"
trace = {{ made = "mail-server", requests = {REQUESTS}, size = "1GiB", pace = "depth" }}
vary = {{ depth = [1, 8] }}
"""


def run(world: World) -> None:
    protocol, image = world.dir / "mail.toml", world.dir / "image"
    protocol.write_text(PROTOCOL)
    with open(image, "wb") as file:
        file.truncate(128 * MIB)
    device = world.device(128 * MIB, sector=512)
    for out, target, options in [("file", f"fio:{image}", ["--buffered"]), ("native", device.name, [])]:
        world.vsl("lab", "run", protocol, "--device", target, "--out", world.dir / out, "--yes", "--full", *options)
        made = list((world.dir / out / "traces").iterdir())
        equal(len(made), 1, "traces that were made")
        check("-of-128MiB-" in made[0].name, f"its volume is not that of the device: {made[0].name}")
        trace = json.loads(world.vsl("trace", "info", made[0], "--json").out)["requests"]
        measured = steps(world.dir / out)
        equal([step["step"] for step in measured], ["measure/q1", "measure/q8"], "steps")
        for step in measured:
            # What is under way when the log ends is made, and not counted by fio.
            missing = sum(trace[op]["requests"] - step["total"][op]["requests"] for op in ["read", "write"])
            check(0 <= missing < step["point"]["depth"], f"{out}, {step['step']}: {missing} requests of the trace are missing")
            check(94 < step["point"]["read_percent"] < 96, f"{out}: {step['point']['read_percent']} % reads")
            check(step["outstanding"] <= step["point"]["depth"] * 1.1, f"{out}: {step['outstanding']} outstanding")
    own = world.dir / "own.csv"
    own.write_text("".join(f"7,{'RW'[at % 2]},{at * 8192},4096,{at}\n" for at in range(400)))
    world.vsl("lab", "run", protocol, "--device", f"fio:{image}", "--trace", own, "--out", world.dir / "own", "--yes", "--full", "--buffered")
    counts = [step["total"][op]["requests"] for step in steps(world.dir / "own") for op in ["read", "write"]]
    check(counts[:2] == [200] * 2 and 393 <= sum(counts[2:]) <= 400, f"requests of a recorded trace: {counts}")
