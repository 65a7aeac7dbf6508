"""Telemetry beside fio's own figures: IOPS, bandwidth and latency of a load agree; the stream, /telemetry, `vsl top` and /metrics tell the same."""

import threading

from harness import GIB, World, check, equal
from harness.fio import fio
from harness.web import up

OURS = True
SECONDS = 12


def run(world: World) -> None:
    web = up(world)
    device = world.device(1 * GIB)
    names = {metric["name"] for metric in web.get("/telemetry/metrics") if metric["of"] == "device"}
    samples: list[dict] = []
    done = threading.Event()

    def listen() -> None:
        for event, data in web.events():
            if event == "sample" and device.name in data["devices"]:
                samples.append(data)
            if done.is_set():
                return

    reader = threading.Thread(target=listen, daemon=True)
    reader.start()
    before = web.get(f"/devices/{device.name}")
    report = fio(
        world, device, "--rw=randrw", "--rwmixread=70", "--bs=4k", "--iodepth=8", f"--runtime={SECONDS}", "--time_based",
        "--size=256m", "--rate_iops=2100,900",
    )
    after = web.get(f"/devices/{device.name}")
    done.set()
    reader.join(5)

    requests = {kind: report[kind]["total_ios"] for kind in ("read", "write")}
    equal(after["reads"] - before["reads"], requests["read"], "reads since the attach, and fio's")
    equal(after["writes"] - before["writes"], requests["write"], "writes since the attach, and fio's")
    busy = [sample["devices"][device.name]["values"] for sample in samples]
    check(len(busy) >= SECONDS - 2, f"{len(busy)} samples in {SECONDS} s")
    unknown = {name for values in busy for name in values} - names
    check(not unknown, f"metrics that the catalogue does not name: {unknown}")
    for kind in ("read", "write"):
        # The seconds in the middle are whole ones of the load.
        middle = [values[f"{kind}_iops"] for values in busy if values[f"{kind}_iops"] > 0][2:-2]
        check(len(middle) >= SECONDS // 2, f"{kind}: only {len(middle)} seconds of load")
        mean, own = sum(middle) / len(middle), report[kind]["iops"]
        check(abs(mean / own - 1) < 0.05, f"{kind}: {mean:.0f} requests a second, fio says {own:.0f}")
        bandwidth = [values[f"{kind}_bytes_per_s"] for values in busy if values[f"{kind}_iops"] > 0][2:-2]
        mean_bytes, own_bytes = sum(bandwidth) / len(bandwidth), report[kind]["bw_bytes"]
        check(abs(mean_bytes / own_bytes - 1) < 0.05, f"{kind}: {mean_bytes:.0f} bytes a second, fio says {own_bytes}")
        # fio also counts the way to us and back, so ours is less; and it is not nothing.
        slow = report[kind]["lat_ns"]["mean"] / 1000
        medians = [values[f"{kind}_p50_us"] for values in busy if f"{kind}_p50_us" in values]
        check(medians and 0 < sorted(medians)[len(medians) // 2] <= 1.2 * slow + 50, f"{kind}: medians {medians}, fio's mean {slow:.0f} us")
        for values in busy:
            if f"{kind}_p50_us" in values:
                told = [values[f"{kind}_{end}"] for end in ("p50_us", "p99_us", "p999_us")]
                check(told == sorted(told), f"{kind}: percentiles out of order: {told}")
    depth = max(values["queue_depth_max"] for values in busy)
    check(1 <= depth <= 8, f"queue depth of a load with 8 at once: {depth}")

    text = web.ask("GET", "!/metrics").text
    lines = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line and not line.startswith("#")}
    label = f'{{device="{device.name}"}}'
    equal(lines[f"openvsl_device_reads_total{label}"], after["reads"], "reads as Prometheus reads them")
    check(f"openvsl_device_free_ratio{label}" in lines and "openvsl_service_memory_bytes" in lines, text[:2000])
    check(device.name in world.vsl("top", "--once").out, "vsl top does not show the device")
    service = web.get("/telemetry")["service"]
    check(service["memory_bytes"] > 1e6 and service["cpu_percent"] >= 0, f"{service}")
