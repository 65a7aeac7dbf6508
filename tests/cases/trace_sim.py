"""A trace that fio recorded is played on a simulated card, at its times, faster and at a depth; what is wrong in one is said."""

import json

from harness import MIB, World, check, equal

OURS = True


def run(world: World) -> None:
    recorded = world.dir / "recorded"
    world.run(
        "fio", "--name=job", f"--filename={world.dir / 'target'}", f"--size={64 * MIB}", "--rw=randrw", "--bs=4k",
        "--number_ios=3000", "--rate_iops=3000,3000", f"--write_iolog={recorded}",
    )
    # fio may have stalled and caught up at the end: one more request, later, does not wait for the card to be done with that.
    *rest, last = recorded.read_text().splitlines()
    at, file, _ = last.split(" ")
    recorded.write_text("\n".join([*rest, f"{int(at) + 500_000} {file} read 0 4096", f"{int(at) + 500_000} {file} close", ""]))
    trace = json.loads(world.vsl("trace", "info", recorded, "--json").out)

    def play(*options: object) -> dict:
        common = ["--scale", 64, "--json", "--trace", recorded]
        return json.loads(world.vsl("sim", "iodrive-320-mlc", *common, *options).out)["jobs"][0]

    seconds = {}
    for name, options in {
        "recorded": [],
        "twice": ["--pace", "scaled:2"],
        "depth": ["--pace", "depth", "--iodepth", 8, "--map", "compact"],
    }.items():
        job = play(*options)
        for op in ["read", "write"]:
            equal(job[op]["total_ios"], trace["requests"][op]["requests"], f"{op}s, {name}")
        seconds[name] = job["job_runtime"] / 1000
    # Virtual time: the same on any machine.
    check(abs(seconds["recorded"] / trace["duration_seconds"] - 1) < 0.01, f"{seconds} for {trace['duration_seconds']} s")
    check(abs(seconds["twice"] / seconds["recorded"] - 0.5) < 0.01, f"{seconds}")
    check(seconds["depth"] < seconds["twice"], f"{seconds}")

    with open(recorded, "a") as file:
        file.write("7000000 nonsense\n")
    lines = recorded.read_text().count("\n")
    for command in [["trace", "info", recorded], ["sim", "iodrive-320-mlc", "--trace", recorded]]:
        said = world.vsl(*command, fails=True).text
        check(f"recorded: line {lines}: the action is missing" in said, said)
