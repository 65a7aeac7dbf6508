"""fio and its NBD engine."""

import json
import subprocess

from harness.servers import Device
from harness.world import World


def fio(world: World, device: Device, *options: str, timeout: float = 100) -> dict:
    """Runs one fio job on a device and gives its report; fio fails when what it reads back is not what it wrote."""
    report = world.dir / "fio.json"
    world.run(
        "fio", "--name=job", "--ioengine=nbd", f"--uri={device.uri}", "--output-format=json", f"--output={report}",
        "--group_reporting", "--verify_fatal=1", "--exitall_on_error=1", *options, timeout=timeout,
    )
    text = report.read_text()
    return json.loads(text[text.index("{") :])["jobs"][0]


def background_writes(world: World, device: Device, share: range, fsync: int, jobs: int = 2, depth: int = 16) -> subprocess.Popen:
    """fio in the background, which writes a part of a device at random until it is killed or its device goes."""
    return world.start(
        "fio", "--name=load", "--ioengine=nbd", f"--uri={device.uri}", "--rw=randwrite", "--bsrange=4k-64k", f"--iodepth={depth}",
        f"--numjobs={jobs}", f"--offset={share.start}", f"--size={len(share)}", "--time_based", "--runtime=60", f"--fsync={fsync}",
        log="fio.log",
    )
