"""Under a real systemd, with a listening socket that it holds: restarts, kills and an upgrade of the unit under fio verify over NVMe/TCP, without an I/O error."""

import random
import re
import time
from pathlib import Path

from harness import World, check, equal
from harness import debian
from harness.guest import Guest, fio_command, nbd_disk
from harness.guest_restarts import another_version

SLOW = True
OURS = True
LIMIT = 900
ROOT = Path(__file__).resolve().parents[2]
OUTAGES = {
    "restart": "systemctl restart openvsl",
    "kill -9": "systemctl kill -s KILL openvsl",
    "stop and start": "systemctl stop openvsl; sleep 3; systemctl start openvsl",
    "upgrade": "install -m 755 /files/vsl-new /usr/local/bin/vsl.new; mv /usr/local/bin/vsl.new /usr/local/bin/vsl; systemctl restart openvsl",
}
ROUNDS = 4


def run(world: World) -> None:
    installed = world.dir / "installed"
    world.run(ROOT / "scripts/install-files.sh", world.vsl_path, "/usr/local", installed)
    # The unit that the page shows, on the loopback of the guest.
    [unit] = re.findall(r"```ini\n(# /etc/systemd/system/openvsl.socket\n.*?)```", (ROOT / "docs/nvme.md").read_text(), re.DOTALL)
    socket = installed / "etc/systemd/system/openvsl.socket"
    socket.parent.mkdir(parents=True)
    socket.write_text(re.sub(r"ListenStream=[\d.]+", "ListenStream=127.0.0.1", unit))
    world.run("tar", "-C", installed, "--exclude=*.debug", "--owner=0", "--group=0", "-cf", world.dir / "installed.tar", ".")
    new = another_version(world)
    new.rename(world.dir / "vsl-new")
    world.run("strip", world.dir / "vsl-new")

    root = debian.device(world)
    with debian.boot(world, *nbd_disk(root, "root"), files=[world.dir / "installed.tar", world.dir / "vsl-new"]) as guest:
        guest.run("""mkdir /files; mount -o ro /dev/disk/by-id/virtio-files /files; tar -xf /files/installed.tar -C /
            systemd-sysusers; systemctl daemon-reload; systemctl enable --now openvsl.socket openvsl.service""", timeout=120)
        guest.run("vsl create /srv/disk.vsl --size 256MiB; chown openvsl /srv/disk.vsl; vsl attach /srv/disk.vsl")
        path = guest.run("vsl connect disk 2>/dev/null").strip()
        check(path.startswith("/dev/nvme"), f"the path that is printed: {path}")
        survives(guest, path)
        guest.run("vsl disconnect disk")
        said = guest.run("systemctl is-active openvsl; vsl --version").split()
        equal(said[:3], ["active", "vsl", new.name.removeprefix("vsl-")], "the unit, and the version")


def survives(guest: Guest, path: str) -> None:
    """Each outage a few times, while fio writes and verifies."""
    job = fio_command(path, "--rw=randwrite", "--bsrange=4k-64k", "--size=8m", "--iodepth=16", "--verify=crc32c", "--do_verify=1", "--randseed=$pass")
    work = guest.start(f"trap '' PIPE; pass=0; while [ ! -e /tmp/stop ]; do pass=$((pass + 1)); {job}; done; echo $pass")

    def requests() -> int:
        check(not work.ended.is_set(), f"fio in the guest ended: {work.said[-4000:]}")
        said = guest.run("vsl status disk --field reads; vsl status disk --field writes", fails=None).split()
        return sum(int(word) for word in said) if len(said) == 2 and all(word.isdigit() for word in said) else 0

    for number in range(ROUNDS):
        for name, command in OUTAGES.items():
            time.sleep(random.uniform(0, 1))
            guest.run(command, timeout=120)
            # Counted from the attach on: some more after it than right behind it.
            guest.world.wait(lambda: requests() > 0, f"the service after {name}, round {number}", 120)
            before = requests()
            guest.world.wait(lambda: requests() > before, f"requests after {name}, round {number}", 120)
    guest.run("touch /tmp/stop")
    passes = int(guest.finish(work, timeout=300))
    check(passes > 0, "fio verified nothing")
    kinds = ", ".join(f"{ROUNDS} × {name}" for name in OUTAGES)
    print(f"figure: under systemd and fio verify: {kinds}; errors: 0, passes verified: {passes}")
