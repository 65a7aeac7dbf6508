"""A guest's kernel as an NVMe/TCP host: of our service, or of the kernel's own target in the same guest, as a peer."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from harness.check import check, equal
from harness.guest import HOST, Guest, free_port
from harness.world import World

DISCOVERY = "nqn.2014-08.org.nvmexpress.discovery"
HOST_ID = "5b2e9a60-3a5c-4f0e-9d0c-1d6d8e6f4a11"
HOST_NQN = f"nqn.2014-08.org.nvmexpress:uuid:{HOST_ID}"


def listen(world: World, *options: object) -> int:
    """Starts the service with NVMe/TCP on a free port of the loopback, where it also listens after a restart."""
    port = free_port()
    world.servers.options = ["--nvme-listen", f"127.0.0.1:{port}", *options]
    world.servers.up()
    return port


def nqn(world: World, device: str) -> str:
    """The name of a device's subsystem."""
    return f"nqn.2026-11.org.openvsl:uuid:{status(world, device)['uuid']}"


def status(world: World, device: str) -> dict:
    """What the service says of a device."""
    [shown] = [d for d in world.servers.status()["devices"] if d["name"] == device]
    return shown


def connect(guest: Guest, subsystem: str, port: int, *options: str, address: str = HOST) -> str:
    """Connects by the kernel alone, without nvme-cli, and gives the controller's name. It tries again every second if the target goes."""
    words = [
        "transport=tcp", f"traddr={address}", f"trsvcid={port}", f"nqn={subsystem}", f"hostnqn={HOST_NQN}", f"hostid={HOST_ID}",
        "reconnect_delay=1", *options,
    ]
    said = guest.run(f"modprobe nvme-tcp; exec 5<>/dev/nvme-fabrics; echo '{','.join(words)}' >&5; cat <&5").strip()
    check(said.startswith("instance="), f"the kernel answers a connect with {said or 'nothing'}")
    return "nvme" + said.removeprefix("instance=").partition(",")[0]


def namespace(guest: Guest, subsystem: str) -> str:
    """The block device of a subsystem, once it is there."""
    found = guest.run(f"""
        for try in $(seq 100); do
          for n in $(grep -lx {subsystem} /sys/class/nvme/*/subsysnqn /sys/class/nvme-subsystem/*/subsysnqn | xargs -r -n 1 dirname | xargs -r ls); do
            case $n in nvme*n*) [ ! -b /dev/$n ] || {{ echo /dev/$n; exit; }} ;; esac
          done
          sleep 0.1
        done
        dmesg | tail -n 20
        exit 1""")
    return found.strip()


def disconnect(guest: Guest, subsystem: str) -> None:
    """Ends all connections to a subsystem."""
    said = guest.run(f"nvme disconnect -n {subsystem}")
    check("disconnected 1 controller" in said, said)


def cli(guest: Guest, command: str) -> dict:
    """What a command of nvme-cli says, in JSON."""
    return json.loads(guest.run(f"nvme {command} -o json 2>/dev/null"))


def zeros(guest: Guest, path: str, mebibytes: int) -> None:
    """The first part of a block device must read as zeros."""
    said = guest.run(f"dd if={path} bs=1M count={mebibytes} iflag=direct 2>/dev/null | tr -d '\\000' | wc -c").strip()
    equal(said, "0", f"bytes that are not zero in the first {mebibytes} MiB of {path}")


def kernel_target(guest: Guest, mebibytes: int, port: int = 4420) -> str:
    """The kernel's own target, on memory of the guest and on its loopback: gives the subsystem's name."""
    subsystem = "nqn.2026-11.org.openvsl:nvmet"
    guest.run(f"""
        modprobe null_blk nr_devices=0
        modprobe nvmet-tcp
        mount -t configfs configfs /sys/kernel/config
        mkdir /sys/kernel/config/nullb/nullb0
        cd /sys/kernel/config/nullb/nullb0
        echo {mebibytes} > size; echo 4096 > blocksize; echo 1 > memory_backed; echo 1 > discard; echo 1 > power
        cd /sys/kernel/config/nvmet
        mkdir subsystems/{subsystem} subsystems/{subsystem}/namespaces/1 ports/1
        echo 1 > subsystems/{subsystem}/attr_allow_any_host
        echo -n /dev/nullb0 > subsystems/{subsystem}/namespaces/1/device_path
        echo 1 > subsystems/{subsystem}/namespaces/1/enable
        echo tcp > ports/1/addr_trtype; echo ipv4 > ports/1/addr_adrfam
        echo 127.0.0.1 > ports/1/addr_traddr; echo {port} > ports/1/addr_trsvcid
        ln -s /sys/kernel/config/nvmet/subsystems/{subsystem} ports/1/subsystems/{subsystem}""")
    return subsystem


@contextmanager
def recorded(world: World, device: str) -> Iterator[list[tuple[str, int, int]]]:
    """What a device is asked for meanwhile: kind, offset and length of each request, filled in at the end."""
    trace = world.dir / "recorded.csv"
    trace.unlink(missing_ok=True)
    requests: list[tuple[str, int, int]] = []
    world.vsl("trace", "record", device, "--to", trace)
    yield requests
    said = json.loads(world.vsl("trace", "record", device, "--stop", "--json").out)
    equal(said["dropped"], 0, "requests left out of the recording")
    for line in trace.read_text().splitlines():
        _, _, _, kind, offset, length, _ = line.split(",")
        requests.append((kind, int(offset), int(length)))
