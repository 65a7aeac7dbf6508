"""What takes long: a prediction for each capacity, a demo load and its refusals, lab runs to their reports and side by side, a format with its name typed, a bug report."""

import json
import re
import tarfile

from harness import GIB, MIB, World, check, equal
from harness.libnbd import connect
from harness.web import Web, up

OURS = True
LIMIT = 400


def ended(world: World, web: Web, job: dict, seconds: float = 240) -> dict:
    """The job once it has ended."""
    world.wait(lambda: web.get(f"/jobs/{job['id']}")["state"] != "running", f"job {job}", seconds)
    return web.get(f"/jobs/{job['id']}")


def run(world: World) -> None:
    web = up(world)
    device = world.device(1 * GIB)
    demo(world, web, device)
    formats(world, web, device)
    predict(world, web)
    lab(world, web)
    (world.dir / "secret").write_text("never to be seen\n")
    world.vsl("account", "add", "ada", "--role", "viewer", "--password-file", world.dir / "secret")
    key = world.vsl("account", "key", "ada").out.strip()
    world.vsl("bugreport", "-o", world.dir / "report.tar.gz")
    with tarfile.open(world.dir / "report.tar.gz") as bundle:
        names = bundle.getnames()
        whole = b"".join(bundle.extractfile(name).read() for name in names)
    for name in ("about.json", "devices.json", "audit.json", "alert-rules.json", f"history-{device.name}.csv"):
        check(f"openvsl-bugreport/{name}" in names, f"{name} is not among {names}")
    for secret in ("never to be seen", key, web.headers["Authorization"].split()[1]):
        check(secret.encode() not in whole, "the bug report holds a secret")


def demo(world: World, web: Web, device) -> None:
    h = connect(device)
    h.pwrite(b"\x07" * MIB, 0)
    web.refused(409, "POST", f"/devices/{device.name}/demo", {"confirm": device.name})
    h.shutdown()
    world.wait(lambda: not web.get(f"/devices/{device.name}")["clients"], "the client to be gone")
    web.refused(400, "POST", f"/devices/{device.name}/demo", {})
    web.refused(400, "POST", f"/devices/{device.name}/demo", {"confirm": "yes"})
    job = web.do("POST", f"/devices/{device.name}/demo", {"confirm": device.name}, 202)
    lives = lambda: web.get("/telemetry")["devices"].get(device.name, {"values": {}})["values"].get("read_iops", 0) > 50
    world.wait(lives, "the load to be seen", 20)
    equal(web.get(f"/devices/{device.name}/demo")["running"], True, "the load goes on")
    web.do("DELETE", f"/devices/{device.name}/demo")
    equal(ended(world, web, job)["state"], "cancelled", "the load that was stopped")
    job = web.do("POST", "/demo", None, 202)
    world.wait(lambda: "demo" in web.get("/telemetry")["devices"], "the demo device to be measured", 10)
    web.do("DELETE", "/demo")
    equal([one["name"] for one in web.get("/devices")], [device.name], "devices after the first look")
    check(ended(world, web, job)["state"] in ("cancelled", "failed"), "the first look's load")


def formats(world: World, web: Web, device) -> None:
    path = f"/devices/{device.name}/format"
    web.refused(400, "POST", path, {"confirm": "something else"})
    web.refused(400, "POST", path, {"confirm": device.name, "capacity": "everything"})
    before = web.get(f"/devices/{device.name}")
    after = web.do("POST", path, {"confirm": device.name, "capacity": "improved-write", "label": "anew"})
    equal((after["label"], after["mapped_sectors"], after["state"]), ("anew", 0, "attached"), "the device that was formatted")
    check(after["uuid"] != before["uuid"] and 0.65 < after["bytes"] / before["bytes"] < 0.75, f"{after}")


def predict(world: World, web: Web) -> None:
    web.refused(400, "POST", "/predictions", {"workload": "random-write-4k"})
    web.refused(400, "POST", "/predictions", {"profile": "iodrive-320-mlc", "workload": "nothing"})
    request = {"profile": "iodrive-320-mlc", "workload": "random-write-4k", "capacities": ["advertised", "maximum-write"]}
    job = ended(world, web, web.do("POST", "/predictions", request, 202))
    equal((job["state"], job["progress"]), ("done", 1.0), f"{job}")
    stock, half = job["result"]["choices"]
    check(half["bytes"] < stock["bytes"] and half["iops"] > stock["iops"], f"half the capacity is not faster: {stock} {half}")
    check(half["write_amplification"] < stock["write_amplification"], f"{stock} {half}")
    check(half["lifetime_written_bytes"] > stock["lifetime_written_bytes"] > 1e12, f"{stock} {half}")


def lab(world: World, web: Web) -> None:
    check("snia-pts-write-saturation" in [one["name"] for one in web.get("/lab/protocols")], "protocols")
    request = {"protocol": "ioblazer", "device": "iodrive-320-mlc", "name": "first", "scale": 64}
    web.refused(400, "POST", "/lab/runs", {**request, "name": "../first"})
    web.refused(400, "POST", "/lab/runs", {**request, "protocol": "/etc/passwd"})
    job = ended(world, web, web.do("POST", "/lab/runs", request, 202))
    equal(job["state"], "done", f"{job}")
    [listed] = web.get("/lab/runs")
    equal((listed["name"], listed["protocol"], listed["report"]), ("first", "ioblazer", True), "the run")
    page = web.ask("GET", "/lab/runs/first/report")
    check(page.headers["Content-Type"].startswith("text/html") and "<svg" in page.text, page.text[:300])
    web.refused(409, "POST", "/lab/runs", request)
    web.refused(404, "GET", "/lab/runs/second/report")
    compared(world, web, request)
    for run in web.get("/lab/runs"):
        web.do("DELETE", f"/lab/runs/{run['name']}")
    equal(web.get("/lab/runs"), [], "runs after the last was removed")


def compared(world: World, web: Web, request: dict) -> None:
    """Two runs side by side as a page, and in words; what cannot be compared is refused."""
    job = ended(world, web, web.do("POST", "/lab/runs", {**request, "name": "second", "device": "iodrive-640-mlc"}, 202))
    equal(job["state"], "done", f"{job}")
    page = web.ask("GET", "/lab/compare?runs=first,second")
    check(page.status == 200 and page.headers["Content-Type"].startswith("text/html") and "<svg" in page.text, page.text[:300])
    words = re.sub(r"<[^>]*>", " ", page.text)
    check("first" in words and "second" in words and str(world.dir) not in page.text, "the page does not name the runs by their names")
    web.refused(400, "GET", "/lab/compare?runs=first")
    web.refused(400, "GET", "/lab/compare?runs=first,../second")
    equal(web.refused(404, "GET", "/lab/compare?runs=first,third")["error"], "there is no run 'third'", "a run that is not there")
    equal([path.name for path in (world.dir / "state" / "lab").glob(".*")], [], "files that a comparison left")

    directory = world.dir / "state" / "lab"
    rows = json.loads(world.vsl("lab", "compare", directory / "first", directory / "second", "--all", "--json").out)["rows"]
    check(rows, "nothing was compared")
    text = world.vsl("lab", "compare", directory / "first", directory / "second", "--all").out
    check("first" in text and "second" in text and len(text.splitlines()) >= len(rows), text)
    check("no run's directory" in world.vsl("lab", "compare", directory / "first", world.dir, fails=True).err, "a directory without a run")
    world.vsl("lab", "run", "snia-pts-latency", "--device", "iodrive-320-mlc", "--scale", 64, "--out", directory / "other", "--yes")
    refused = web.refused(400, "GET", "/lab/compare?runs=first,other")
    equal(refused["error"], "these are runs of different protocols: ioblazer and snia-pts-latency", "runs of different protocols")
    check("the same protocol" in refused["help"], f"{refused}")
