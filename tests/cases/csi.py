"""The Kubernetes driver passes csi-sanity against a real service, and its own tests of snapshots: volumes are made, connected, mounted, copied, and gone afterwards."""

import re
import shutil

from harness import World, check
from harness.bare import TREE

ROOT = True
OURS = True
SLOW = True
LIMIT = 600
# What other tests see of these mounts would keep them busy.
PRIVATE = ["unshare", "--mount", "--propagation", "private"]


def run(world: World) -> None:
    check(shutil.which("go"), "there is no Go here: the driver needs 1.26 or later")
    # The driver's own tests choose by themselves how volumes are used.
    for access, which in [("mount", "."), ("block", "^TestSanity$")]:
        environment = [f"VSL={world.vsl_path.resolve()}", f"ACCESS={access}"]
        test = ["go", "-C", TREE / "integrations/csi", "test", "-count=1", "-v", "-run", which, "./..."]
        done = world.run(*PRIVATE, "env", *environment, *test, timeout=LIMIT)
        said = re.sub(r"\x1b\[[\d;]*m", "", done.text)
        [(ran, of, passed, failed)] = re.findall(r"Ran (\d+) of (\d+) Specs.*?\n.*?(\d+) Passed.*?(\d+) Failed", said)
        check(int(passed) >= 60 and int(failed) == 0, f"{passed} of csi-sanity passed, {failed} failed")
        own = re.findall(r"^--- PASS: (\w+)", said, re.MULTILINE)
        check(access == "block" or len(own) == 5, f"the driver's tests: {own}")
        print(f"figure: csi-sanity, {access}: {passed} passed, {int(of) - int(ran)} are for capabilities that are not there")
