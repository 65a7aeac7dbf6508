"""fio and its NBD engine."""

import json

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
