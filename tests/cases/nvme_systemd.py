"""The package under a real systemd, with a listening socket that it holds: restarts, kills and upgrades under fio verify over NVMe/TCP, without an I/O error; then its removal."""

import random
import re
import time

from harness import World, check, equal
from harness import debian
from harness.bare import TREE, package
from harness.guest import Guest, fio_command, nbd_disk
from harness.guest_restarts import another_version

SLOW = True
OURS = True
LIMIT = 1500
OUTAGES = {
    "restart": "systemctl restart openvsl",
    "kill -9": "systemctl kill -s KILL openvsl",
    "stop and start": "systemctl stop openvsl; sleep 3; systemctl start openvsl",
    # It restarts the service by itself.
    "upgrade": "dpkg -i /files/new.deb",
}
ROUNDS = 2


def run(world: World) -> None:
    new = another_version(world)
    old = package(world).rename(world.dir / "old.deb")
    files = [old, package(world, new).rename(world.dir / "new.deb"), world.dir / "openvsl.socket"]
    # The unit that the page shows, on the loopback of the guest.
    [unit] = re.findall(r"```ini\n(# /etc/systemd/system/openvsl.socket\n.*?)```", (TREE / "docs/nvme.md").read_text(), re.DOTALL)
    files[-1].write_text(re.sub(r"ListenStream=[\d.]+", "ListenStream=127.0.0.1", unit))

    root = debian.device(world)
    with debian.boot(world, *nbd_disk(root, "root"), files=files) as guest:
        guest.run("mkdir /files; mount -o ro /dev/disk/by-id/virtio-files /files")
        guest.run("dpkg -i /files/old.deb; ! systemctl is-active openvsl", timeout=400)
        guest.run("cp /files/openvsl.socket /etc/systemd/system; systemctl daemon-reload; systemctl enable --now openvsl.socket openvsl.service", timeout=120)
        # 2.0 of 10, by systemd's own measure of the unit that runs.
        guest.run("systemd-analyze security --no-pager --threshold=20 openvsl", timeout=120)
        guest.run("vsl create /srv/disk.vsl --size 256MiB; chown openvsl /srv/disk.vsl; vsl attach /srv/disk.vsl")
        path = guest.run("vsl connect disk 2>/dev/null").strip()
        check(path.startswith("/dev/nvme"), f"the path that is printed: {path}")
        survives(guest, path)
        guest.run("vsl disconnect disk")
        said = guest.run("systemctl is-active openvsl; vsl --version").split()
        equal(said[:3], ["active", "vsl", new.name.removeprefix("vsl-")], "the unit, and the version")
        said = guest.run("""systemctl disable --now openvsl.socket; dpkg --remove openvsl
            ! systemctl is-active openvsl; ls /var/lib/openvsl/devices.toml /srv/disk.vsl; dpkg --purge openvsl; ls -d /var/lib/openvsl /srv/disk.vsl""", timeout=120, fails=None)
        equal(re.findall(r"^/.*$", said, re.MULTILINE), ["/srv/disk.vsl", "/var/lib/openvsl/devices.toml", "/srv/disk.vsl"], "what stays after removal and purge")


def survives(guest: Guest, path: str) -> None:
    """Each outage a few times, while fio writes and verifies."""
    job = fio_command(path, "--rw=randwrite", "--bsrange=4k-64k", "--size=8m", "--iodepth=16", "--verify=crc32c", "--do_verify=1", "--randseed=$pass")
    work = guest.start(f"trap '' PIPE; pass=0; while [ ! -e /tmp/stop ]; do pass=$((pass + 1)); {job}; done; echo $pass")

    def requests() -> int:
        check(not work.ended.is_set(), f"fio in the guest ended: {work.said[-4000:]}")
        said = guest.run("vsl status disk --field reads; vsl status disk --field writes", timeout=120, fails=None).split()
        return sum(int(word) for word in said) if len(said) == 2 and all(word.isdigit() for word in said) else 0

    for number in range(ROUNDS):
        for name, command in OUTAGES.items():
            time.sleep(random.uniform(0, 1))
            guest.run(command, timeout=300)
            # Counted from the attach on: some more after it than right behind it.
            guest.world.wait(lambda: requests() > 0, f"the service after {name}, round {number}", 120)
            before = requests()
            guest.world.wait(lambda: requests() > before, f"requests after {name}, round {number}", 120)
    guest.run("touch /tmp/stop")
    passes = int(guest.finish(work, timeout=300))
    check(passes > 0, "fio verified nothing")
    kinds = ", ".join(f"{ROUNDS} × {name}" for name in OUTAGES)
    print(f"figure: under systemd and fio verify: {kinds}; errors: 0, passes verified: {passes}")
