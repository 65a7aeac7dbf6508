"""Prometheus scrapes the service with a viewer's key: promtool finds nothing to complain of, it counts what the device counts, and every question of the Grafana dashboard has an answer."""

import json
import socket
import time
import urllib.parse
import urllib.request
from pathlib import Path

from harness import MIB, World, check, equal
from harness.caches import create, volume
from harness.fio import fio
from harness.servers import Device
from harness.web import up

OURS = True
DASHBOARD = Path(__file__).resolve().parents[2] / "packaging" / "grafana-openvsl.json"


def free_port() -> int:
    """A TCP port that nobody listens on just now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def scrape(world: World, target: str, port: int):
    """Starts Prometheus as docs/metrics.md says, but to look each second; what asks it."""
    (world.dir / "key").write_text(world.vsl("account", "key", "prometheus").out)
    config = world.dir / "prometheus.yml"
    config.write_text(
        "global: { scrape_interval: 1s }\nscrape_configs:\n  - job_name: openvsl\n"
        f"    authorization: {{ credentials_file: {world.dir}/key }}\n    static_configs: [{{ targets: ['{target}'] }}]\n"
    )
    world.run("promtool", "check", "config", config)
    world.start(
        "prometheus", f"--config.file={config}", f"--storage.tsdb.path={world.dir}/tsdb", f"--web.listen-address=127.0.0.1:{port}",
        log="prometheus.log",
    )

    def ready() -> bool:
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=10).status == 200
        except OSError:
            return False

    world.wait(ready, "Prometheus to begin")

    def ask(path: str, **what: str) -> list:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(what)}", timeout=10) as answer:
            told = json.load(answer)
        equal(told["status"], "success", path)
        return told["data"]

    return ask


def run(world: World) -> None:
    web = up(world)
    plain = world.device(256 * MIB)
    path = world.dir / "card.vsl"
    world.vsl("create", path, "--emulate", "iodrive-320-mlc", "--scale", 64)
    world.vsl("attach", path)
    card = Device("card", path, 0, world.servers.uri("card"))
    fast = world.dir / "fast.vsl"
    world.vsl("create", fast, "--size", 64 * MIB, "--address-space", "1PiB", "--yes")
    world.vsl("attach", fast)
    behind = world.dir / "mail.img"
    with open(behind, "wb") as image:
        image.truncate(64 * MIB)
    create(world, "mail", behind, "write-back")
    world.vsl("account", "add", "prometheus", "--role", "viewer", "--no-password")
    target = web.address.split("//")[1].rstrip("/")
    ask = scrape(world, target, free_port())

    load = ["--rw=randrw", "--bs=4k", "--iodepth=4", "--fsync=50", "--size=32m", "--rate_iops=300", "--runtime=4", "--time_based"]
    for device in (plain, card, volume(world, "mail")):
        fio(world, device, *load)
    text = web.ask("GET", "!/metrics").body
    said = world.run("promtool", "check", "metrics", stdin=text)
    equal(said.text, "", "what promtool says of the metrics")

    # The store behind a cache is written to after the load, too.
    counted = lambda: {view["name"]: view["writes"] for view in web.get("/devices")}
    world.vsl("cache", "flush", "mail")
    counts = counted()
    check(min(counts.values()) > 0, f"{counts}")
    writes = lambda: ask("query", query="openvsl_device_writes_total")["result"]
    seen = lambda: {one["metric"]["device"]: float(one["value"][1]) for one in writes()}
    world.wait(lambda: seen() == counted(), f"Prometheus to count {counts} writes", 15)
    equal(sorted(ask("label/device/values", **{"match[]": "openvsl_device_info"})), ["card", "disk", "fast", "mail"], "devices that the dashboard offers")
    begin = time.time() - 120
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            question = target["expr"].replace("$device", ".*")
            series = ask("query_range", query=question, start=str(begin), end=str(time.time()), step="1")["result"]
            numbers = [value for one in series for _, value in one["values"] if value not in ("NaN", "+Inf")]
            check(numbers, f"{panel['title']}: {question}: no answer: {series}")
