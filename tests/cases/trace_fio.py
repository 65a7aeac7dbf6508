"""fio's iologs go both ways: what fio recorded is read request by request, and what we write fio replays in full."""

import json

from harness import MIB, World, check, equal

OURS = True

SIZE = 16 * MIB


def fio(world: World, *options: object) -> dict:
    """One fio job on a file; its report."""
    report = world.dir / "fio.json"
    world.run("fio", "--name=job", "--output-format=json", f"--output={report}", *options)
    text = report.read_text()
    return json.loads(text[text.index("{") :])["jobs"][0]


def info(world: World, path: object) -> dict:
    return json.loads(world.vsl("trace", "info", path, "--json").out)


def run(world: World) -> None:
    recorded, target = world.dir / "recorded", world.dir / "target"
    job = fio(
        world, f"--filename={target}", f"--size={SIZE}", "--rw=randrw", "--rwmixread=70", "--bsrange=4k-64k", "--fsync=20",
        "--number_ios=2000", "--rate_iops=2000,1000", f"--write_iolog={recorded}",
    )
    read = info(world, recorded)
    equal(read["source"]["format"], "fio3", "format")
    for ours, theirs in [("read", job["read"]), ("write", job["write"])]:
        equal(read["requests"][ours]["requests"], theirs["total_ios"], f"{ours}s")
        equal(read["requests"][ours]["bytes"], theirs["io_bytes"], f"bytes of {ours}s")
    # The sync at the end of a file is counted by fio and not logged, or the other way round, from version to version.
    check(abs(read["requests"]["flush"]["requests"] - job["sync"]["total_ios"]) <= 2, "flushes of the trace and of fio")
    check(read["footprint"]["span_bytes"] <= SIZE, "a request beyond the file")

    # The same records through each format that is written and back into fio's.
    plain = info(world, recorded)
    for ending in ["vscsi", "csv.zst", "iolog.gz"]:
        other = world.dir / f"other.{ending}"
        world.vsl("trace", "convert", recorded, other)
        again = info(world, other)
        for part in ["records", "sizes", "footprint", "sequential"]:
            equal(again[part], plain[part], f"{part} by {ending}")

    # One that is made up, with the file that fio is to use in it.
    made, replay = world.dir / "made.csv", world.dir / "replay.iolog"
    world.vsl("trace", "generate", "mail-server", "--records", 3000, "--size", "64MiB", "--rate", 10000, "--to", made)
    world.vsl("trace", "convert", made, replay, "--file-name", target)
    expected = info(world, replay)
    with open(target, "ab") as file:
        file.truncate(64 * MIB)
    job = fio(world, f"--read_iolog={replay}", "--ioengine=psync")
    for ours in ["read", "write"]:
        equal(job[ours]["total_ios"], expected["requests"][ours]["requests"], f"{ours}s that fio replayed")
        equal(job[ours]["io_bytes"], expected["requests"][ours]["bytes"], f"bytes of {ours}s that fio replayed")
    # At the recorded times: not before the last request was due. How much later is the machine's affair.
    took = max(job["read"]["runtime"], job["write"]["runtime"]) / 1000
    check(took > 0.8 * expected["duration_seconds"], f"replayed in {took} s what took {expected['duration_seconds']} s")
