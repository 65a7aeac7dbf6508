"""Unmodified kernels, old and new, as NVMe/TCP hosts: found, connected, file systems verified, space given back, asked by nvme-cli."""

import json

from harness import KIB, MIB, Device, World, check, equal, nvme
from harness.guest import BACKPORTS, DISTRIBUTION, HOST, Guest, newer_kernel
from harness.libnbd import connect

OURS = True
LIMIT = 300
SIZE = 512 * MIB
FILE = 8 * MIB


def run(world: World) -> None:
    port = nvme.listen(world)
    device = world.device(SIZE)
    world.device(64 * MIB, "small")
    identities = set()
    kernels = [DISTRIBUTION, BACKPORTS] if newer_kernel(world, "NVMe/TCP with a newer kernel, and atomic writes") else [DISTRIBUTION]
    for kernel in kernels:
        with Guest(world, kernel) as guest:
            guest.run("modprobe nvme-tcp")
            is_discovered(world, guest, port)
            subsystem = nvme.nqn(world, device.name)
            controller = nvme.connect(guest, subsystem, port)
            path = nvme.namespace(guest, subsystem)
            identities.add(describes_itself(world, guest, controller, path))
            is_beside_its_snapshot(world, guest, port, path)
            for kind in ["ext4", "xfs", "btrfs"]:
                keeps_files(world, guest, path, kind)
            gives_space_back(world, guest, path)
            obeys(guest, path)
            if kernel == BACKPORTS:
                writes_whole(world, guest, device, path)
            guest.run(f"nvme reset /dev/{controller}")
            nvme.zeros(guest, path, 1)
            nvme.disconnect(guest, subsystem)
            # Attached anew it is the same drive, by whatever way it comes; here with digests of all that goes over the wire.
            world.vsl("detach", device.name)
            world.vsl("attach", device.path, "--name", device.name)
            connects_to_all(guest, port)
            path = nvme.namespace(guest, subsystem)
            identities.add(guest.read(f"/sys/block/{path.removeprefix('/dev/')}/wwid"))
            nvme.namespace(guest, nvme.nqn(world, "small"))
            guest.fio(path, "--rw=randwrite", "--bsrange=4k-256k", "--size=8m", "--iodepth=16", "--verify=crc32c", "--do_verify=1")
            guest.run("nvme disconnect-all; [ ! -e /sys/class/nvme/nvme* ]")
            equal(guest.errors(), [], f"errors in the log of Linux {guest.version}")
    equal(len(identities), 1, f"identities of one device: {identities}")


def connects_to_all(guest: Guest, port: int) -> None:
    """`nvme connect-all`, with digests. The drives are announced where the service was reached: on a loopback that the guest must pass on."""
    guest.start(f"exec nc -ll -p {port} -e nc {HOST} {port}")
    guest.run(f"""
        until netstat -ltn | grep -q :{port}; do sleep 0.1; done
        nvme connect-all -t tcp -a 127.0.0.1 -s {port} -q {nvme.HOST_NQN} -I {nvme.HOST_ID} --hdr-digest --data-digest""")


def is_discovered(world: World, guest: Guest, port: int) -> None:
    """Each device is a subsystem at the address at which it was asked for."""
    found = nvme.cli(guest, f"discover -t tcp -a {HOST} -s {port} -q {nvme.HOST_NQN} -I {nvme.HOST_ID}")["records"]
    drives = {record["subnqn"]: record for record in found if record["subtype"] == "nvme subsystem"}
    equal(set(drives), {nvme.nqn(world, "disk"), nvme.nqn(world, "small")}, "subsystems that are discovered")
    for record in drives.values():
        equal((record["trtype"], record["trsvcid"].strip()), ("tcp", str(port)), "where a subsystem is")


def describes_itself(world: World, guest: Guest, controller: str, path: str) -> str:
    """What nvme-cli and the kernel learn of the device; gives its identity."""
    status = nvme.status(world, "disk")
    about = nvme.cli(guest, f"id-ctrl /dev/{controller}")
    equal(about["subnqn"], nvme.nqn(world, "disk"), "subnqn")
    check("OpenVSL" in about["mn"], f"model: {about['mn']}")
    equal(about["mdts"], 8, "the largest transfer, as a power of two of 4 KiB")
    equal(about["vwc"] & 1, 1, "a volatile write cache")
    blocks = nvme.cli(guest, f"id-ns {path}")
    equal((blocks["nsze"], blocks["nuse"]), (SIZE // 4096, status["mapped_bytes"] // 4096), "size and use in blocks")
    equal((blocks["nawun"], blocks["nawupf"], blocks["nabo"]), (255, 255, 0), "atomic units, less one")
    equal(blocks["nsfeat"] & 1, 1, "thin provisioning")
    equal(blocks["dlfeat"] & 7, 1, "deallocated blocks read as zeros")
    equal(blocks["nguid"], status["uuid"].replace("-", ""), "NGUID")
    health = nvme.cli(guest, f"smart-log /dev/{controller}")
    equal((health["critical_warning"], health["percent_used"]), (0, 0), "health")
    check(health["spare_thresh"] < health["avail_spare"] <= 100, f"spare: {health}")
    for log in ["error-log", "fw-log", "effects-log --csi=0"]:
        nvme.cli(guest, f"{log} /dev/{controller}")
    said = json.dumps([nvme.cli(guest, "list -v"), nvme.cli(guest, "list-subsys")])
    for word in [controller, path.removeprefix("/dev/"), nvme.nqn(world, "disk"), '"live"']:
        check(word in said, f"nvme list and list-subsys do not show {word}: {said}")
    queue = f"/sys/block/{path.removeprefix('/dev/')}/queue"
    equal((guest.read(f"{queue}/logical_block_size"), guest.read(f"{queue}/write_cache")), ("4096", "write back"), "blocks and cache")
    atomic = guest.run(f"cat {queue}/atomic_write_unit_max_bytes 2>/dev/null || true").strip()
    # Kernels before 6.11 know nothing of it.
    equal(atomic, "" if guest.version.startswith("6.1.") else str(MIB), "atomic_write_unit_max_bytes")
    return guest.read(f"/sys/block/{path.removeprefix('/dev/')}/wwid")


def is_beside_its_snapshot(world: World, guest: Guest, port: int, path: str) -> None:
    """A snapshot is a drive of its own, to be read, which the kernel does not take for the device."""
    subsystem = nvme.nqn(world, "disk") + "@yesterday"
    guest.run(f"head -c 4096 /bin/busybox > /tmp/a; nvme write {path} -s 8 -c 0 -z 4096 -d /tmp/a")
    world.vsl("snapshot", "create", "disk", "yesterday")
    guest.run(f"nvme write-zeroes {path} -s 8 -c 0")
    nvme.connect(guest, subsystem, port)
    shown = nvme.namespace(guest, subsystem)
    check(shown != path, f"the snapshot is {path}")
    guest.run(f"dd if={shown} bs=4096 skip=8 count=1 | cmp - /tmp/a; dd if={path} bs=4096 skip=8 count=1 | cmp - /tmp/a && exit 1 || true")
    equal(guest.read(f"/sys/block/{shown.removeprefix('/dev/')}/ro"), "1", "a snapshot is read-only")
    wwids = {guest.read(f"/sys/block/{drive.removeprefix('/dev/')}/wwid") for drive in (path, shown)}
    equal(len(wwids), 2, f"identities of the device and its snapshot: {wwids}")
    nvme.disconnect(guest, subsystem)
    world.vsl("snapshot", "delete", "disk", "yesterday")


def keeps_files(world: World, guest: Guest, path: str, kind: str) -> None:
    """A file system of that kind: made, written, checked; what was deleted is given back by fstrim."""
    force = "-F" if kind == "ext4" else "-f"
    guest.run(f"mkfs.{kind} -q {force} {path} 2>&1; modprobe {kind} || true; mount -t {kind} {path} /mnt", timeout=120)
    guest.fio("/mnt/file", "--rw=randwrite", "--bsrange=4k-64k", f"--size={FILE}", "--iodepth=8", "--verify=crc32c", "--do_verify=1")
    guest.run("sync -f /mnt")
    full = nvme.status(world, "disk")["mapped_bytes"]
    # XFS frees what a file had in the background: mounted again, it is done.
    guest.run(f"rm /mnt/file; umount /mnt; mount -t {kind} {path} /mnt; fstrim -v /mnt; umount /mnt")
    freed = full - nvme.status(world, "disk")["mapped_bytes"]
    check(freed > FILE * 3 // 4, f"fstrim on {kind} gave back {freed} bytes of {FILE}")
    checks = {"ext4": "e2fsck -fn", "xfs": "xfs_repair -n", "btrfs": "btrfs check"}
    guest.run(f"{checks[kind]} {path} 2>&1")


def gives_space_back(world: World, guest: Guest, path: str) -> None:
    """A discard of everything leaves nothing, and zeros."""
    guest.run(f"blkdiscard -f {path}")
    equal(nvme.status(world, "disk")["mapped_bytes"], 0, "bytes mapped after a discard of everything")
    nvme.zeros(guest, path, 16)


def obeys(guest: Guest, path: str) -> None:
    """Commands that no file system gives."""
    block = f"{path} -s 8 -c 0"
    guest.run(f"head -c 4096 /bin/busybox > /tmp/a; head -c 4096 /dev/zero > /tmp/b; nvme write {block} -z 4096 -d /tmp/a")
    guest.run(f"nvme compare {block} -z 4096 -d /tmp/a; nvme verify {block}; nvme flush {path} -n 1")
    check("Compare Failure" in guest.run(f"nvme compare {block} -z 4096 -d /tmp/b 2>&1", fails=True), "a compare that must fail")
    guest.run(f"nvme write-zeroes {path} -s 0 -c 255; nvme compare {block} -z 4096 -d /tmp/b; nvme dsm {path} -n 1 -d -s 8 -b 1")


def writes_whole(world: World, guest: Guest, device: Device, path: str) -> None:
    """RWF_ATOMIC up to 1 MiB: done, each as one command; beyond it refused by the kernel."""
    sizes = [4 * KIB, 16 * KIB, 64 * KIB, 128 * KIB, 512 * KIB, MIB]
    with nvme.recorded(world, device.name) as requests:
        for number, size in enumerate(sizes):
            guest.run(f"atomic_write {path} {MIB * number} {size} {number + 1}")
    equal([r[1:] for r in requests if r[0] == "Write"], [(MIB * n, size) for n, size in enumerate(sizes)], "writes that arrived")
    check("Invalid argument" in guest.run(f"atomic_write {path} 0 {2 * MIB} 1 2>&1", fails=True), "an atomic write of 2 MiB")
    handle = connect(device)
    for number, size in enumerate(sizes):
        equal(bytes(handle.pread(size, MIB * number)), bytes([number + 1]) * size, f"what the atomic write of {size} bytes left")
    handle.shutdown()
    guest.run(f"blkdiscard -f {path}")
