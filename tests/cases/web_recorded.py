"""A format is predicted from what clients asked of this device: what was recorded of it tells random writes from reads; nothing recorded yet, a running recording and another's file are refused or told."""

from harness import GIB, MIB, World, check, equal
from harness.fio import fio
from harness.web import Web, up

OURS = True
LIMIT = 300
CARD = "iodrive-320-mlc"
ASK = {"device": "disk", "profile": CARD, "workload": "recorded", "capacities": ["advertised", "maximum-write"]}


def predicted(world: World, web: Web, **more: object) -> list[dict]:
    """What each choice would do, once the prediction is done."""
    job = web.do("POST", "/predictions", ASK | more, 202)
    world.wait(lambda: web.get(f"/jobs/{job['id']}")["state"] != "running", "the prediction", 120)
    job = web.get(f"/jobs/{job['id']}")
    equal((job["state"], job["kind"], job["device"]), ("done", "prediction", "disk"), f"{job}")
    equal((job["result"]["workload"], job["result"]["profile"]), ("recorded", CARD), "what was predicted")
    return job["result"]["choices"]


def native(world: World, web: Web) -> None:
    """Of a device on a file only what the layer does is predicted: its store decides rates, latencies and wear."""
    job = web.do("POST", "/predictions", {key: value for key, value in ASK.items() if key != "profile"}, 202)
    world.wait(lambda: web.get(f"/jobs/{job['id']}")["state"] != "running", "the prediction", 120)
    result = web.get(f"/jobs/{job['id']}")["result"]
    equal((result["profile"], result["lifetime_bytes_per_s"]), (None, None), f"{result}")
    disk = web.get("/devices/disk")
    stock, half = result["choices"]
    equal((stock["bytes"], half["bytes"]), (disk["bytes"], disk["bytes"] // 2), "its own capacities")
    check(abs(stock["over_provisioning_percent"] - disk["over_provisioning_percent"]) < 0.5, f"{stock} {disk}")
    unknown = ["iops", "bytes_per_s", "p50_us", "p99_us", "p999_us", "lifetime_written_bytes", "lifetime_days"]
    equal([choice[figure] for choice in (stock, half) for figure in unknown], [None] * 14, f"{result}")
    check(1 <= half["write_amplification"] <= stock["write_amplification"], f"{result}")


def recorded(world: World, web: Web, device, name: str, *load: str) -> None:
    """Records a load into a file of this name."""
    web.do("POST", "/devices/disk/record", {"path": str(world.dir / name)})
    fio(world, device, "--bs=4k", "--iodepth=16", "--size=512m", "--number_ios=20000", *load)
    status = web.do("POST", "/devices/disk/record/stop")
    equal((status["recording"], status["dropped"]), (False, 0), "the recording")
    check(status["written"] >= 20000, f"{status}")


def run(world: World) -> None:
    web = up(world)
    device = world.device(1 * GIB)
    refused = web.refused(409, "POST", "/predictions", ASK)
    check("nothing was recorded of disk" in refused["error"] and "record a while" in refused["help"], f"{refused}")
    web.refused(400, "POST", "/predictions", ASK | {"trace": "writes.csv"})

    recorded(world, web, device, "writes.csv.zst", "--rw=randwrite")
    stock, half = predicted(world, web)
    check(half["bytes"] < stock["bytes"] and stock["iops"] > 0 and stock["p999_us"] >= stock["p50_us"] > 0, f"{stock} {half}")
    check(1 <= half["write_amplification"] <= stock["write_amplification"], f"writes: {stock} {half}")
    check(half["lifetime_written_bytes"] >= stock["lifetime_written_bytes"] > 0, f"writes: {stock} {half}")
    check(half["lifetime_days"] >= stock["lifetime_days"] > 0, f"at one rate of writing: {stock} {half}")
    check(0 < stock["p99_least_us"] <= stock["p99_us"] <= stock["p99_most_us"], f"{stock}")

    native(world, web)

    # The last recording counts, and it is another load.
    recorded(world, web, device, "reads.csv.zst", "--rw=randread")
    web.do("POST", "/devices/disk/record", {"path": str(world.dir / "under-way.csv")})
    reads = predicted(world, web)[0]
    wear = ["write_amplification", "lifetime_written_bytes", "lifetime_days"]
    equal([reads[figure] for figure in wear], [None, None, None], f"reads wear nothing: {reads}")
    web.do("POST", "/devices/disk/record/stop")
    again = predicted(world, web, trace=str(world.dir / "writes.csv.zst"))
    equal(again, [stock, half], "the same recording, by its name")
    job = web.do("POST", "/predictions", ASK | {"trace": str(world.dir / "nowhere.csv")}, 202)
    world.wait(lambda: web.get(f"/jobs/{job['id']}")["state"] == "failed", "a recording that is not there to be told", 20)
    check("nowhere.csv" in web.get(f"/jobs/{job['id']}")["error"], f"{web.get('/jobs')}")
