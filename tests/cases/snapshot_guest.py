"""A snapshot of a guest's disk that QEMU's own agent froze needs no repair, and one of the running guest does; the guest goes on behind both."""

from harness import MIB, World, check, equal
from harness.guest import DISTRIBUTION, Guest
from harness.vhost import disk

OURS = True
LIMIT = 180


def run(world: World) -> None:
    world.servers.options = ["--vhost"]
    device = world.device(128 * MIB)
    agent = world.dir / "qemu-ga.sock"
    port = ["-chardev", f"socket,id=ga,path={agent},server=on,wait=off", "-device", "virtserialport,chardev=ga,name=org.qemu.guest_agent.0"]
    with Guest(world, DISTRIBUTION, *disk(world, device), *port) as guest:
        uuid = next(d["uuid"] for d in world.servers.status()["devices"] if d["name"] == device.name)
        path = guest.disk(uuid.replace("-", "")[:20])
        guest.run(f"mkfs.ext4 -q -F {path} 2>&1; mount -t ext4 {path} /mnt", timeout=120)
        guest.run("""
            cd /sys/class/virtio-ports
            for port in *; do [ "$(cat $port/name)" != org.qemu.guest_agent.0 ] || found=$port; done
            qemu-ga --daemonize --method=virtio-serial --path=/dev/$found --statedir=/tmp --pidfile=/tmp/ga.pid --logfile=/tmp/ga.log""")
        work = guest.start("n=0; while [ ! -e /tmp/stop ]; do n=$((n + 1)); echo $n > /mnt/file$((n % 40)); [ $((n % 9)) != 0 ] || sync; done; echo $n")
        guest.run("sleep 1")
        for name, options in (("busy", []), ("frozen", ["--freeze", agent])):
            world.vsl("snapshot", "create", device.name, name, *options)
            guest.run("sleep 1; echo x > /mnt/goes-on; sync")
        said = world.vsl("snapshot", "create", device.name, "frozen", "--freeze", agent, fails=True).text
        check("frozen" in said, said)
        guest.run("echo x > /mnt/goes-on; sync; touch /tmp/stop")
        check(int(guest.finish(work)) > 0, "the guest wrote nothing")
        guest.run("umount /mnt")
        equal(guest.errors(), [], "errors in the guest's kernel log")
    needs = {}
    for name in ("busy", "frozen"):
        copy = world.dir / f"{name}.img"
        world.run("nbdcopy", device.uri.replace(f"/{device.name}?", f"/{device.name}@{name}?"), copy)
        needs[name] = "needs_recovery" in world.run("dumpe2fs", "-h", copy).out
    equal(world.run("e2fsck", "-f", "-n", world.dir / "frozen.img", fails=None).code, 0, "e2fsck of a frozen snapshot")
    equal(needs, {"busy": True, "frozen": False}, "which journals must be replayed")
