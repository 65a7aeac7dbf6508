"""DH-HMAC-CHAP with nvme-cli and the kernel as the other side: who knows the secret connects, both ways; nobody else does, listed or not."""

from harness import MIB, World, check, equal, nvme
from harness.guest import BACKPORTS, HOST, Guest, newer_kernel

OURS = True
LIMIT = 120


def run(world: World) -> None:
    if not newer_kernel(world, "DH-HMAC-CHAP with a kernel as the other side"):
        return
    with Guest(world, BACKPORTS) as guest:
        guest.run("modprobe nvme-tcp")
        secrets = [guest.run(f"nvme gen-dhchap-key -m {hmac} -n {nvme.HOST_NQN}").strip() for hmac in [1, 2, 1]]
        ours, theirs, wrong = secrets
        hosts = world.dir / "hosts"
        hosts.write_text(f"{nvme.HOST_NQN} {ours} {theirs}\n")
        port = nvme.listen(world, "--nvme-hosts", hosts)
        world.device(64 * MIB)
        subsystem = nvme.nqn(world, "disk")
        connect = f"nvme connect -t tcp -a {HOST} -s {port} -n {subsystem} -q {nvme.HOST_NQN} -I {nvme.HOST_ID} 2>&1"
        for secret in ["", f"-S {wrong}", f"-S {wrong} -C {theirs}", f"-S {ours} -C {wrong}"]:
            guest.run(f"{connect} {secret}", fails=True)
        stranger = connect.replace(nvme.HOST_NQN, nvme.HOST_NQN.replace("5b2e", "aaaa")).replace(nvme.HOST_ID, nvme.HOST_ID.replace("5b2e", "aaaa"))
        guest.run(f"{stranger} -S {ours}", fails=True)
        for secret in [f"-S {ours}", f"-S {ours} -C {theirs}"]:
            guest.run(f"{connect} {secret}")
            path = nvme.namespace(guest, subsystem)
            guest.fio(path, "--rw=randwrite", "--bs=16k", "--size=2m", "--iodepth=8", "--verify=crc32c", "--do_verify=1")
            nvme.disconnect(guest, subsystem)
        check("authenticated" in guest.run("dmesg"), "the kernel's log tells of no authentication")
        equal(guest.errors(), [], "errors in the guest's kernel log")
