"""History: seconds and minutes of a load, the same after kill -9, by UUID once the device is gone, as CSV and from `vsl history`."""

import csv
import io
import json
import time

from harness import GIB, MIB, World, check, equal
from harness.fio import fio
from harness.servers import kill
from harness.web import state, up

OURS = True


def run(world: World) -> None:
    web = up(world)
    device = world.device(1 * GIB)
    fio(world, device, "--rw=randwrite", "--bs=16k", "--iodepth=4", "--runtime=5", "--time_based", f"--size={128 * MIB}")
    time.sleep(2)
    path = f"/devices/{device.name}/history?from=-600&metrics=write_bytes_per_s,read_iops"
    before = web.get(path)
    equal(before["resolution_s"], 1, "the finest resolution")
    equal(before["at"], sorted(set(before["at"])), "moments ascend")
    busy = {at: value for at, value in zip(before["at"], before["values"]["write_bytes_per_s"]) if value}
    check(len(busy) >= 4, f"seconds with writes: {busy}")
    written = sum(busy.values())
    counted = web.get(f"/devices/{device.name}")["host_written_bytes"]
    # The figures are rates, each of the time since the last: a service that comes too late for a second leaves it out.
    since = {at: at - last for last, at in zip(before["at"], before["at"][1:])}
    said = sum(value * since.get(at, 1) for at, value in busy.items())
    check(said / 1.5 < counted < said * 1.5, f"history says {said:.0f} bytes were written, the device {counted}")
    uuid = before["uuid"]

    kill(device)
    web = up(world)
    world.wait(lambda: web.ask("GET", f"/devices/{device.name}").status == 200, "the device to be attached again")
    after = web.get(path)
    kept = dict(zip(after["at"], after["values"]["write_bytes_per_s"]))
    for at, value in busy.items():
        equal(kept.get(at), value, f"second {at} after kill -9")
    check(any(state(world).rglob("history.db")) or any(world.dir.rglob("history.db")), "no history.db")
    alert = [alert["rule"] for alert in web.get("/alerts")["alerts"]]
    world.wait(lambda: "unclean-attach" in [a["rule"] for a in web.get("/alerts")["alerts"]], f"the alert of an unclean attach; there are {alert}", 10)

    # A minute in the making is written from time to time: what there is may be from before the load.
    minutes = f"/devices/{device.name}/history?from=-600&resolution=1m&metrics=write_p99_us,write_bytes_per_s"
    world.wait(lambda: any(web.get(minutes)["values"]["write_bytes_per_s"]), "a minute with writes", 75)

    world.vsl("detach", device.name)
    by_uuid = web.get(f"/devices/{uuid}/history?from=-600&metrics=write_bytes_per_s")
    check(set(busy) <= set(by_uuid["at"]), "the history of a detached device by its UUID")
    text = world.vsl("history", "export", device.name, "--last", "10m", "--metrics", "write_bytes_per_s").out
    rows = list(csv.DictReader(io.StringIO(text)))
    equal(sum(float(row["write_bytes_per_s"] or 0) for row in rows), written, "CSV")
    exported = json.loads(world.vsl("history", "export", "service", "--last", "10m", "--json").out)
    check(exported["values"]["memory_bytes"], "the service's own history")
    listed = json.loads(world.vsl("history", "list", "--json").out)["series"]
    check(uuid in [series["uuid"] for series in listed], f"{listed}")
    web.refused(404, "GET", "/devices/nobody/history")
