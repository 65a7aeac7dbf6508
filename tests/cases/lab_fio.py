"""vsl lab runs a protocol through fio on a file and on an attached device; a fio that fails or prints rubbish is named in its own words."""

import base64
import os
import zlib

from harness import MIB, World, check, equal
from harness.lab import journal

OURS = True

PROTOCOL = """
name = "small"
title = "Small"
description = "One of each"
follows = "Nobody"
[[test]]
name = "mix"
title = "Mix"
workload = "random-8k-70-30"
[[test.stage]]
name = "fill"
role = "fill"
size = "128KiB"
read_percent = 0
access = "sequential"
threads = 2
depth = 4
written = 1.0
[[test.stage]]
name = "measure"
role = "measure"
duration = "1500ms"
ramp = "100ms"
threads = 2
depth = 4
intervals = 5
vary = { read_percent = [100, 65, 0] }
[[test.stage]]
name = "sizes"
role = "measure"
workload = "storagereview-file-server"
threads = 1
depth = 8
duration = "600ms"
pause = "100ms"
"""


def checked(run, target: str) -> None:
    """Checks that a run is whole and its figures agree with each other."""
    lines = journal(run)
    begin = next(line for line in lines if line["kind"] == "begin")
    equal(begin["machine"]["target"], target, "kind of target")
    steps = [line for line in lines if line["kind"] == "step"]
    equal([step["step"] for step in steps], ["fill", "measure/r100", "measure/r65", "measure/r0", "sizes"], "steps")
    equal(lines[-1]["kind"], "finished", "last line")
    for step in steps:
        total = step["total"]
        requests = total["all"]["requests"]
        check(requests > 0, f"{step['step']}: no requests")
        equal(sum(cell["requests"] for cell in step["cells"]), requests, f"{step['step']}: requests of all cells")
        over_time = sum(cell["requests"] for interval in step["series"] for cell in interval["cells"])
        equal(over_time, requests, f"{step['step']}: requests over time")
        # The fill takes a few milliseconds, less than the kernel may be able to account for.
        cpu = step.get("cpu_us_per_io")
        check(cpu or step["step"] == "fill", f"{step['step']}: no processor time")
        check(cpu != 0, f"{step['step']}: processor time that was not measured is told as none")
        held = total["all"]["latency"]["mean_ns"] / 1e9 * total["all"]["iops"]
        check(0.5 < held / step["outstanding"] < 1.5, f"{step['step']}: {held} outstanding by Little's law, not {step['outstanding']}")
        for cell in step["cells"]:
            # The encoding is HdrHistogram's: a cookie, a length, and what zlib unpacks.
            packed = base64.b64decode(cell["hdr"])
            equal(packed[:4], b"\x1c\x84\x93\x14", "cookie of a compressed histogram")
            check(zlib.decompress(packed[8:]), "an empty histogram")
    reads = {step["step"]: step["total"]["read"]["requests"] / step["total"]["all"]["requests"] for step in steps}
    equal((reads["measure/r100"], reads["measure/r0"]), (1, 0), "shares of reads")
    check(0.55 < reads["measure/r65"] < 0.75, f"share of reads: {reads['measure/r65']}")


def run(world: World) -> None:
    protocol = world.dir / "small.toml"
    protocol.write_text(PROTOCOL)
    image = world.dir / "image"
    image.write_bytes(bytes(32 * MIB))

    # What is on it is asked for, and nobody is there to answer.
    said = world.vsl("lab", "run", protocol, "--device", f"fio:{image}", "--out", world.dir / "asked", fails=True).text
    check("--yes" in said and str(image) in said, f"the refusal names neither the file nor --yes: {said}")
    check(not (world.dir / "asked").exists(), "a refused run left a directory")

    options = ["--buffered", "--yes", "--full"]
    world.vsl("lab", "run", protocol, "--device", f"fio:{image}", "--out", world.dir / "file", *options)
    checked(world.dir / "file", "file")
    equal(image.stat().st_size, 32 * MIB, "size of the file")
    report = world.vsl("lab", "report", world.dir / "file").text
    check("measure/r65" in report and "IO/s" in report, f"the report lacks a step: {report}")

    coarse = world.device(64 * MIB, "coarse")
    said = world.vsl("lab", "run", protocol, "--device", coarse.name, "--out", world.dir / "coarse", "--yes", "--full", fails=True).text
    check("requests of 512: the device has sectors of 4096 B" in said, f"sectors that are too large are not named: {said}")
    device = world.device(64 * MIB, sector=512)
    world.vsl("lab", "run", protocol, "--device", device.name, "--out", world.dir / "native", "--yes", "--full")
    checked(world.dir / "native", "native")
    compared = world.vsl("lab", "compare", world.dir / "file", world.dir / "native", "--all").text
    check("with too few repeats to say" in compared and "mix/measure/r65" in compared, f"not compared: {compared}")

    # A device that vanishes: what was measured stays, and the reason is fio's.
    broken = world.dir / "broken"
    for name, script, expected in [
        ("rubbish", "case $1 in --version) echo fio-3.33;; *) echo nonsense > report;; esac", "fio's report is not understood: it is no JSON; it begins: nonsense"),
        ("empty", "case $1 in --version) echo fio-3.33;; *) : > report;; esac", "it begins: (nothing)"),
        ("failing", "case $1 in --version) echo fio-3.33;; *) echo 'fio: the disk is on fire' >&2; exit 1;; esac", "the disk is on fire"),
        ("killed", "case $1 in --version) echo fio-3.33;; *) kill -9 $$;; esac", "signal: 9"),
        ("half", "case $1 in --version) echo fio-3.33;; *) echo '{\"jobs\": [{\"error\": 0}]}' > report;; esac", "missing field"),
    ]:
        fake = world.dir / f"fio-{name}"
        fake.write_text(f"#!/bin/sh\n{script}\n")
        fake.chmod(0o755)
        os.environ["OPENVSL_FIO"] = str(fake)
        said = world.vsl("lab", "run", protocol, "--device", f"fio:{image}", "--out", broken / name, *options, fails=True).text
        check(expected in said, f"{name}: not in fio's words: {said}")
        equal(journal(broken / name)[-1]["kind"], "broke", f"{name}: last line")
    os.environ["OPENVSL_FIO"] = str(world.dir / "no-fio")
    said = world.vsl("lab", "run", protocol, "--device", f"fio:{image}", "--out", world.dir / "none", *options, fails=True).text
    check("no-fio" in said and "install the package fio" in said, f"a missing fio is not named: {said}")

    # The same run with the real fio: it goes on, and comes to its end.
    del os.environ["OPENVSL_FIO"]
    world.vsl("lab", "resume", broken / "failing", "--yes")
    checked(broken / "failing", "file")
    equal([line["attempt"] for line in journal(broken / "failing") if line["kind"] == "begin"], [1, 2], "attempts")
