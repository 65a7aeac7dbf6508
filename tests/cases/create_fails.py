"""Making a device fails at each single operation of its files, with marking it for drills too: no file of it is left."""

from harness import KIB, MIB, World, check, equal
from harness.faultfs import FaultFs

OURS = True
ROOT = True
# More operations than a create has.
MOST = 200


def run(world: World) -> None:
    fs = FaultFs(world)
    for name, options in [("plain", []), ("drills", ["--drills"]), ("parity", ["--drills", "--parity", 1])]:
        files = [fs.path / f"{name}{number}.vsl" for number in range(3 if name == "parity" else 1)]
        for kinds in [["write"], ["sync"]]:
            failed = 0
            for after in range(MOST):
                rule = fs.fail(kinds, "EIO", after=after, times=1)
                done = world.vsl("create", *files, "--size", 16 * MIB, *options, fails=None)
                fired = fs.rule(rule)["fired"]
                fs.lift()
                if done.code == 0:
                    break
                failed += 1
                equal([file.name for file in fs.path.iterdir()], [], f"files left when {kinds[0]} {after} of {name} failed ({done.text.strip()})")
            equal(done.code, 0, "exit status when nothing fails any more")
            check(not fired, f"{kinds[0]} {after} of {name} failed, and create said nothing")
            check(failed > 0, f"no {kinds[0]} of {name} ever failed")
            print(f"{name}: {failed} times at a {kinds[0]}", flush=True)
            for file in files:
                check(file.stat().st_size > 64 * KIB, f"{file} is there")
                file.unlink()
