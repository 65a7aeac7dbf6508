"""Runs SimpleSSD's standalone simulator (github.com/SimpleSSD) on the reference geometry, for bench/simulation.py. Its README says how it is built."""

import re
import tempfile
from pathlib import Path

from mqsim import measured

# Times are picoseconds. Nothing but flash and its channels takes time: no caches, no host.
DEVICE = """
[pal]
Channel = 8
Package = 2
Die = 1
Plane = 2
Block = 128
Page = 256
PageSize = 4096
EnableMultiPlaneOperation = 0
NANDType = 1
LSBRead = 75000000
MSBRead = 75000000
LSBWrite = 750000000
MSBWrite = 750000000
Erase = 3800000000
DMASpeed = 333
DMAWidth = 8
SuperblockSize =
PageAllocation = CWDP
[ftl]
MappingMode = 0
OverProvisioningRatio = 0.25
FillingMode = 2
FillRatio = 1.0
InvalidPageRatio = 0.2
[icl]
CacheSize = 4194304
EnableReadCache = 0
EnableReadPrefetch = 0
EnableWriteCache = 0
"""
LOAD = """
[global]
Mode = 0
LogPeriod = 0
Interface = 0
SubmissionLatency = 0us
CompletionLatency = 0us
[generator]
io_size = {bytes}
readwrite = randread
blocksize = 4K
iomode = async
iodepth = 32
randseed = 13245
"""


def reads(binary: Path, requests: int) -> dict[str, float]:
    """So many random reads of 4 KiB at depth 32: what they took, and what they came to."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        (directory / "ssd.cfg").write_text(DEVICE)
        (directory / "load.cfg").write_text(LOAD.format(bytes=4096 * requests))
        output = directory / "output"
        cpu, peak = measured([str(binary), str(directory / "load.cfg"), str(directory / "ssd.cfg"), place], output)
        said = output.read_text()
    [done, per_second] = re.findall(r"I/O \((?:counts|bytes)\): (?:\d+ \(Read: (\d+)|\d+ \(([\d.]+) B/s)", said)[::-1]
    [(unit, mean)] = re.findall(r"Latency \((.)s\): .*avg=([\d.]+)", said)
    micro = {"p": 1e-6, "n": 1e-3, "u": 1.0, "m": 1e3}[unit]
    rate = float(per_second[1]) / 4096
    return {"cpu": cpu, "peak": peak, "requests": int(done[0]), "iops": rate, "mean_us": float(mean) * micro}
