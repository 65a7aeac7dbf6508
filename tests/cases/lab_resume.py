"""vsl lab killed with SIGKILL again and again resumes to the very results of a run that was never killed."""

import signal

from harness import World, check, equal
from harness.lab import journal

OURS = True
LIMIT = 300

PROTOCOL = """
name = "small"
title = "Small"
description = "Enough to be killed in the middle"
follows = "Nobody"
devices = ["iodrive-320-mlc"]
"""
TEST = """
[[test]]
name = "test-{number}"
title = "Test"
workload = "random-8k-70-30"
[[test.stage]]
name = "precondition"
role = "precondition"
duration = "200ms"
[[test.stage]]
name = "measure"
role = "measure"
duration = "100ms"
vary = {{ depth = [1, 4, 16] }}
"""


def results(run) -> dict:
    """What a run came to: the steps of each part's finished attempt, without the attempt's number."""
    lines = journal(run)
    equal(lines[-1]["kind"], "finished", f"last line of {run.name}")
    finished = {line["part"]: line["attempt"] for line in lines if line["kind"] == "end"}
    steps: dict = {}
    for line in lines:
        if line["kind"] in ("step", "verdict") and finished[line["part"]] == line["attempt"]:
            steps.setdefault(line["part"], []).append({key: value for key, value in line.items() if key != "attempt"})
    return steps


def run(world: World) -> None:
    protocol = world.dir / "small.toml"
    protocol.write_text(PROTOCOL + "".join(TEST.format(number=number) for number in range(4)))
    command = ["lab", "run", protocol, "--full", "--scale", "64", "--jobs", "2"]
    world.vsl(*command, "--out", world.dir / "whole", timeout=200)
    expected = results(world.dir / "whole")
    equal(len(expected), 4, "parts")

    killed = world.dir / "killed"
    process = world.start(world.vsl_path, *command, "--out", killed, log="killed.log")
    kills = 0
    for lines in (2, 5, 9, 14):
        world.wait(lambda: process.poll() is not None or len(journal(killed)) >= lines, f"{lines} lines", seconds=100)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        process = world.start(world.vsl_path, "lab", "resume", killed, "--jobs", "2", log="killed.log")
    equal(process.wait(timeout=200), 0, "exit status of the last resume")
    check(kills >= 2, f"only {kills} kills came in time")
    equal(results(killed), expected, "results after the kills")
