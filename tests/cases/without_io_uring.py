"""Where a filter refuses io_uring the service says so, in its status and to whoever starts it, and serves files all the same; `vsl doctor` says what to do."""

import errno
import json
import sys

from harness import MIB, World, check, equal

OURS = True
# A container runtime's filter, in front of a command. Podman's and Docker's answer as if the kernel did not know the call.
FILTERED = """
import os, seccomp, sys
filtered = seccomp.SyscallFilter(seccomp.ALLOW)
filtered.add_rule(seccomp.ERRNO(int(sys.argv[1])), "io_uring_setup")
filtered.load()
os.execvp(sys.argv[2], sys.argv[2:])
"""


def run(world: World) -> None:
    for answer in [errno.EPERM, errno.ENOSYS]:
        here = [sys.executable, "-c", FILTERED, answer, world.vsl_path]
        said = world.run(*here, "up").text
        check("without io_uring" in said and "filter" in said, said)
        if answer == errno.EPERM:
            world.vsl("down")
    path = world.dir / "disk.vsl"
    world.vsl("create", path, "--size", 128 * MIB)
    world.vsl("attach", path)
    said = world.vsl("status", "disk").out
    check("Without io_uring" in said, said)
    uri = world.vsl("status", "disk", "--field", "uri").out.strip()
    world.run(
        "fio", "--name=verify", "--ioengine=nbd", f"--uri={uri}", "--rw=randrw", "--bs=4k", "--size=64m", "--iodepth=32",
        "--verify=crc32c", "--do_verify=1",
    )
    found = {look["check"]: look["state"] for look in json.loads(world.run(*here, "doctor", "--json").out)["items"]}
    equal((found["io_uring"], found["runtime directory"]), ("note", "ok"), "what `vsl doctor` finds")
    check("PROBLEM" not in world.run(*here, "doctor").out, "it works, with a restriction")
    said = world.run("env", f"OPENVSL_RUNTIME_DIR={path}/run", world.vsl_path, "doctor", fails=True).out
    check("PROBLEM  runtime directory" in said and "set OPENVSL_RUNTIME_DIR" in said, said)
