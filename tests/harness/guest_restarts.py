"""A guest verifies what it writes, while the service that has its disk is killed or stopped and comes back."""

import random
import time
from collections.abc import Callable

from harness.check import check, equal
from harness.guest import Guest, Script, fio_command
from harness.world import World

# One pass of fio writes all of this, in pieces of mixed sizes, and then reads it back. It flushes nothing: what was answered must be there
# after an outage all the same, because a client that saw no error will not write it again.
PASS = "16m"


class Verifier:
    """Passes of fio in a guest, one after the other, until it is stopped. Each has a seed of its own, so that what another pass wrote fails it."""

    def __init__(self, guest: Guest, path: str) -> None:
        self.guest = guest
        job = fio_command(
            path, "--rw=randwrite", "--bsrange=4k-64k", f"--size={PASS}", "--iodepth=16", "--verify=crc32c", "--do_verify=1",
            "--randseed=$pass",
        )
        self.work: Script = guest.start(
            f"pass=0; while [ ! -e /tmp/stop ]; do pass=$((pass + 1)); {job} || {{ cat /tmp/fio.json; exit 1; }}; echo $pass > /tmp/passes; done"
        )

    def passes(self) -> int:
        """How many passes are complete."""
        check(not self.work.ended.is_set(), f"fio in the guest ended: {self.work.said[-4000:]}")
        return int(self.guest.run("cat /tmp/passes 2>/dev/null || echo 0"))

    def wait_for(self, passes: int, what: str, seconds: float) -> None:
        """Waits until so many are complete."""
        deadline = time.monotonic() + seconds
        while self.passes() < passes:
            check(time.monotonic() < deadline, f"fio in the guest stands still for {seconds} s {what}; {self.guest.run('dmesg | tail -n 30')}")
            time.sleep(0.2)

    def stop(self) -> int:
        """Ends it with the pass that runs, and gives how many there were."""
        self.guest.run("touch /tmp/stop")
        self.guest.finish(self.work, timeout=120)
        return int(self.guest.run("cat /tmp/passes; rm /tmp/stop"))


def restarts(world: World, guest: Guest, path: str, outages: list[Callable[[], None]], seed: int, patience: float = 90) -> None:
    """Each of the outages takes the service away at some moment of a pass and brings it back: no pass fails, and none stands still."""
    print(f"seed {seed}")
    dice = random.Random(seed)
    verifier = Verifier(guest, path)
    verifier.wait_for(1, "before the first outage", patience)
    for number, outage in enumerate(outages):
        time.sleep(dice.uniform(0, 1.5))
        before = verifier.passes()
        outage()
        # The pass that was hit, and one that saw nothing but the new service.
        verifier.wait_for(before + 2, f"after outage {number + 1} of {len(outages)}", patience)
    passes = verifier.stop()
    equal(guest.errors(), [], "errors in the guest's kernel log")
    print(f"figure: outages under fio verify in a guest (Linux {guest.version}): {len(outages)}, errors: 0, passes verified: {passes}")
