"""A device that is taken away in the middle of a test: what was measured stays, the reason is told, and the run goes on when it is back."""

from harness import MIB, World, check, equal
from harness.lab import journal, steps
from harness.servers import kill

OURS = True

PROTOCOL = """
name = "small"
title = "Small"
description = "Long enough to lose its device in the middle"
follows = "Nobody"
[[test]]
name = "reads"
title = "Reads"
workload = "random-8k-70-30"
[[test.stage]]
name = "measure"
role = "measure"
duration = "2s"
vary = { depth = [1, 4, 8] }
"""


def run(world: World) -> None:
    protocol = world.dir / "small.toml"
    protocol.write_text(PROTOCOL)
    device = world.device(64 * MIB, sector=512)
    out = world.dir / "lab"
    lab = world.start(world.vsl_path, "lab", "run", protocol, "--device", device.name, "--out", out, "--yes", "--full", log="lab.log")
    world.wait(lambda: lab.poll() is not None or steps(out), "the first step", seconds=60)
    kill(device)
    check(lab.wait(timeout=60) != 0, "a run without its device ended well")
    said = (world.dir / "lab.log").read_text()
    check(device.name in said and "vsl lab resume" in said, f"neither the device nor the way on is named: {said}")

    measured = steps(out)
    check(len(measured) in (1, 2), f"{len(measured)} steps before the device vanished")
    equal(journal(out)[-1]["kind"], "broke", "last line of the journal")
    check(measured[0]["step"] in world.vsl("lab", "report", out).text, "what was measured is not in the report")

    world.servers.revive(device)
    world.vsl("lab", "resume", out, "--yes")
    equal(journal(out)[-1]["kind"], "finished", "last line of the journal")
    attempts = [line["attempt"] for line in steps(out)]
    equal(attempts, [1] * len(measured) + [2, 2, 2], "attempts of the steps")
