"""An emulated card behind NBD: fio verifies what it writes, figures of pacing are told, and what was flushed survives a kill -9."""

import json

from harness import MIB, World, check
from harness.fio import fio
from harness.servers import Device, kill

OURS = True


def run(world: World) -> None:
    path = world.dir / "card.vsl"
    world.vsl("create", path, "--emulate", "iodrive-320-mlc", "--scale", 64)
    check("spinning disk" in world.vsl("create", world.dir / "x.vsl", "--emulate", "wd-re3", fails=True).text, "refusal")
    world.vsl("up")
    world.vsl("attach", path)
    device = Device("card", path, 0, world.servers.uri("card"))
    result = fio(
        world, device, "--rw=randwrite", "--bsrange=4k-64k", "--bs_unaligned=0", "--iodepth=16", "--size=32M", "--fsync=64",
        "--verify=crc32c", "--verify_backlog=256", "--do_verify=1",
    )
    check(result["write"]["io_bytes"] >= 32 * MIB, f"fio wrote only {result['write']['io_bytes']} bytes")
    view = json.loads(world.vsl("status", "card", "--json").out)["devices"][0]
    check(view["emulation"]["scale"] == 64 and view["profile"] == "iodrive-320-mlc", f"emulation: {view.get('emulation')}")
    check(view["pacing"] and view["pacing_p50_us"] >= 0, f"pacing: {view.get('pacing')}")
    keep = ["--rw=write", "--bs=64k", "--iodepth=4", "--size=32M", "--verify=crc32c"]
    fio(world, device, *keep, "--do_verify=0", "--end_fsync=1")
    kill(device)
    world.servers.revive(device)
    fio(world, device, *keep, "--verify_only=1")
    world.vsl("detach", "card")
    check("yes" in world.vsl("status", path, "-a").out, "detached cleanly")

